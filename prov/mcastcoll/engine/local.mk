# prov/mcastcoll/engine
