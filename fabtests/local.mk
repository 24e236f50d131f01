# fabtests
