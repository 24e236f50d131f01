# prov/mcastcoll/wire
