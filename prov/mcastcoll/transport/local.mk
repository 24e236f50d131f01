# prov/mcastcoll/transport
