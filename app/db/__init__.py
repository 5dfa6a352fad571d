"""The database: engine, tables, migrations and the SQL functions that move money and slots.

`tables` is the shape, `functions/*.sql` the only way money, holds, leases and jobs change,
`migrate` brings a server to both. Features hold their own queries in their `repository`.
"""
