import psycopg
import redis


def test_a_module_gets_its_own_database(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        row = connection.execute("SELECT current_database()").fetchone()
    assert row is not None
    assert row[0].startswith("test_")


def test_a_module_gets_an_empty_valkey(redis_url: str) -> None:
    with redis.Redis.from_url(redis_url) as client:
        assert client.dbsize() == 0
