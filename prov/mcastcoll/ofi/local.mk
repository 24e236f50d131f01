# prov/mcastcoll/ofi
