import django.contrib.postgres.constraints
import django.contrib.postgres.fields
import django.contrib.postgres.fields.ranges
import django.contrib.postgres.indexes
import django.contrib.postgres.operations
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('allocations', '0002_append_only'),
    ]

    operations = [
        django.contrib.postgres.operations.BtreeGistExtension(
        ),
        migrations.CreateModel(
            name='Series',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('team', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='series', to='allocations.team')),
                ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='series', to='allocations.cluster')),
                ('recurrence', models.JSONField()),
                ('zone', models.CharField(max_length=64)),
                ('created_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('ended_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'indexes': [],
                'constraints': [],
            },
        ),
        migrations.CreateModel(
            name='Reservation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='reservations', to='allocations.cluster')),
                ('team', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='reservations', to='allocations.team')),
                ('flavor', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='reservations', to='allocations.flavor')),
                ('allocation', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='reservations', to='allocations.allocation')),
                ('series', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='occurrences', to='reservations.series')),
                ('approval_case', models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='reservation', to='allocations.approvalcase')),
                ('decision', models.CharField(choices=[('draft', 'Draft'), ('requested', 'Requested'), ('counter_offered', 'Counter Offered'), ('approved', 'Approved'), ('rejected', 'Rejected'), ('withdrawn', 'Withdrawn'), ('lapsed', 'Lapsed'), ('cancelled', 'Cancelled')], default='draft', max_length=16)),
                ('purpose', models.CharField(max_length=500)),
                ('spec', models.JSONField()),
                ('score', models.JSONField(blank=True, default=dict)),
                ('start_at', models.DateTimeField()),
                ('end_at', models.DateTimeField()),
                ('hold_expires_at', models.DateTimeField(blank=True, null=True)),
                ('released_at', models.DateTimeField(blank=True, null=True)),
                ('mask_racks', django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), default=list, size=None)),
                ('mask_words', django.contrib.postgres.fields.ArrayField(base_field=models.IntegerField(), default=list, size=None)),
                ('mask_bits', django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), default=list, size=None)),
                ('funding', models.CharField(choices=[('pool', 'Pool'), ('own', 'Own'), ('loan', 'Loan'), ('overcommit', 'Overcommit')], default='pool', max_length=16)),
                ('lender', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='loans', to='allocations.team')),
                ('at_end', models.CharField(choices=[('stop', 'Stop'), ('requeue', 'Requeue'), ('run_over', 'Run Over')], default='stop', max_length=16)),
                ('run_over_minutes', models.PositiveIntegerField(default=0)),
                ('spares', models.CharField(choices=[('held', 'Held'), ('shared_pool', 'Shared Pool'), ('preemptible_use', 'Preemptible Use'), ('none', 'None')], default='held', max_length=16)),
                ('wanted_generation', models.BigIntegerField(default=0)),
                ('external_id', models.CharField(blank=True, max_length=255)),
                ('version', models.PositiveIntegerField(default=1)),
                ('created_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('shared_with', models.ManyToManyField(blank=True, related_name='shared_reservations', to='allocations.team')),
            ],
            options={
                'ordering': ('-id',),
                'indexes': [models.Index(fields=['cluster', 'decision', 'end_at'], name='reservation_by_cluster')],
                'constraints': [models.CheckConstraint(condition=models.Q(('end_at__gt', models.F('start_at'))), name='reservation_ends_after_it_starts'), models.CheckConstraint(condition=models.Q(('start_at__second', 0), ('end_at__second', 0)), name='reservation_on_whole_minutes'), models.CheckConstraint(condition=models.Q(('hold_expires_at__isnull', True), ('decision__in', ('requested', 'counter_offered')), _connector='OR'), name='only_a_request_waits_on_an_expiry')],
            },
        ),
        migrations.CreateModel(
            name='Hold',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('reservation', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='holds', to='reservations.reservation')),
                ('node', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='holds', to='allocations.node')),
                ('period', django.contrib.postgres.fields.ranges.DateTimeRangeField()),
                ('is_spare', models.BooleanField(default=False)),
                ('is_provisional', models.BooleanField(default=True)),
                ('released_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'indexes': [django.contrib.postgres.indexes.GistIndex(condition=models.Q(('released_at__isnull', True)), fields=['period'], name='hold_period')],
                'constraints': [django.contrib.postgres.constraints.ExclusionConstraint(condition=models.Q(('released_at__isnull', True)), expressions=(('node', '='), ('period', '&&')), name='node_held_once'), models.CheckConstraint(condition=models.Q(('period__isempty', False)), name='hold_is_not_empty')],
            },
        ),
        migrations.CreateModel(
            name='ReservationPolicy',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=63)),
                ('number', models.PositiveIntegerField(default=1)),
                ('flavor', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='reservation_policies', to='allocations.flavor')),
                ('tier', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='reservation_policies', to='allocations.tier')),
                ('reservable_share_percent', models.PositiveSmallIntegerField(default=30)),
                ('team_share_percent', models.PositiveSmallIntegerField(blank=True, null=True)),
                ('active_count', models.PositiveIntegerField(blank=True, null=True)),
                ('future_count', models.PositiveIntegerField(blank=True, null=True)),
                ('rack_hours_ahead', models.PositiveIntegerField(blank=True, null=True)),
                ('lead_minutes', models.PositiveIntegerField(default=0)),
                ('horizon_days', models.PositiveIntegerField(default=400)),
                ('max_duration_minutes', models.PositiveIntegerField(blank=True, null=True)),
                ('open_asks_per_team', models.PositiveIntegerField(default=1)),
                ('cool_down_minutes', models.PositiveIntegerField(default=0)),
                ('retired_at', models.DateTimeField(blank=True, null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('name', 'number'), name='reservation_policy_version_once'), models.CheckConstraint(condition=models.Q(('reservable_share_percent__lte', 100)), name='reservable_share_is_a_percentage')],
                'indexes': [],
            },
        ),
        migrations.CreateModel(
            name='WaitingAsk',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='waiting_asks', to='allocations.cluster')),
                ('team', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='waiting_asks', to='allocations.team')),
                ('spec', models.JSONField()),
                ('purpose', models.CharField(max_length=500)),
                ('until_at', models.DateTimeField(blank=True, null=True)),
                ('reservation', models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='waited_as', to='reservations.reservation')),
                ('ended_at', models.DateTimeField(blank=True, null=True)),
                ('created_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
            options={
                'indexes': [],
                'constraints': [],
            },
        ),
    ]
