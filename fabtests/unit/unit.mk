# Unit tests of the wire format, the engine and its simulator.
