"""Events, seals, decisions and charges are append-only: the database refuses to change or remove them."""

from django.db import migrations

TABLES = ("allocations_event", "allocations_eventseal", "allocations_decision", "allocations_charge")

FORWARD = """
CREATE FUNCTION berth_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only: % refused', TG_TABLE_NAME, TG_OP USING ERRCODE = 'insufficient_privilege';
END $$;
""" + "".join(
    f"""
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON {table} FOR EACH ROW EXECUTE FUNCTION berth_append_only();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION berth_append_only();
"""
    for table in TABLES
)
BACKWARD = "".join(
    f"DROP TRIGGER append_only ON {table}; DROP TRIGGER no_truncate ON {table};" for table in TABLES
) + "DROP FUNCTION berth_append_only();"


class Migration(migrations.Migration):
    dependencies = (("allocations", "0001_first_tables"),)
    operations = (migrations.RunSQL(FORWARD, BACKWARD),)
