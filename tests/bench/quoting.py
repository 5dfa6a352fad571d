MEASUREMENTS: tuple = ()
