
import django.contrib.postgres.fields
import django.contrib.postgres.fields.ranges
import django.contrib.postgres.indexes
import django.db.models.deletion
import django.db.models.expressions
import django.db.models.functions.text
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
    ]

    operations = [
        migrations.CreateModel(
            name='GpuModel',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=63, unique=True)),
            ],
            options={
                'ordering': ('name',),
            },
        ),
        migrations.CreateModel(
            name='SyncSource',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=63, unique=True)),
                ('clusters', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=63), blank=True, default=list, size=None)),
                ('ceiling_per_row_gpus', models.PositiveIntegerField(blank=True, null=True)),
                ('ceiling_sum_gpus', models.PositiveIntegerField(blank=True, null=True)),
                ('mode', models.CharField(choices=[('apply', 'Apply'), ('propose', 'Propose')], default='propose', max_length=8)),
                ('removal_limit', models.PositiveIntegerField(blank=True, null=True)),
                ('version', models.PositiveIntegerField(default=0)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.CreateModel(
            name='Tier',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=63, unique=True)),
                ('priority', models.IntegerField(default=0)),
                ('preempts', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=63), blank=True, default=list, size=None)),
                ('preemptible', models.BooleanField(default=False)),
                ('mode', models.CharField(choices=[('requeue', 'Requeue'), ('cancel', 'Cancel'), ('suspend', 'Suspend')], default='requeue', max_length=8)),
                ('notice_minutes', models.PositiveIntegerField(default=0)),
                ('protected_minutes', models.PositiveIntegerField(default=0)),
                ('max_walltime_minutes', models.PositiveIntegerField(blank=True, null=True)),
                ('max_gpus_per_job', models.PositiveIntegerField(blank=True, null=True)),
            ],
            options={
                'ordering': ('-priority', 'name'),
            },
        ),
        migrations.CreateModel(
            name='User',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('password', models.CharField(max_length=128, verbose_name='password')),
                ('last_login', models.DateTimeField(blank=True, null=True, verbose_name='last login')),
                ('email', models.EmailField(max_length=254, unique=True)),
                ('name', models.CharField(max_length=200)),
                ('zone', models.CharField(default='UTC', max_length=64)),
                ('is_active', models.BooleanField(default=True)),
                ('is_demo', models.BooleanField(default=False)),
                ('is_service', models.BooleanField(default=False)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
            options={
                'ordering': ('name', 'id'),
                'constraints': [models.UniqueConstraint(django.db.models.functions.text.Lower('email'), name='email_once_whatever_its_case')],
            },
        ),
        migrations.CreateModel(
            name='Allocation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('split', models.CharField(choices=[('fixed', 'Fixed'), ('by_capacity', 'By Capacity'), ('follow_demand', 'Follow Demand')], default='fixed', max_length=16)),
                ('start_at', models.DateTimeField()),
                ('end_at', models.DateTimeField()),
                ('guaranteed_gpus', models.PositiveIntegerField(default=0)),
                ('borrowing_limit_gpus', models.PositiveIntegerField(blank=True, null=True)),
                ('lending_limit_gpus', models.PositiveIntegerField(blank=True, null=True)),
                ('gpu_hours', models.DecimalField(blank=True, decimal_places=2, max_digits=16, null=True)),
                ('max_walltime_minutes', models.PositiveIntegerField(blank=True, null=True)),
                ('max_gpus_per_job', models.PositiveIntegerField(blank=True, null=True)),
                ('on_exhausted', models.CharField(choices=[('burst_only', 'Burst Only'), ('hold_new', 'Hold New'), ('stop', 'Stop')], default='burst_only', max_length=16)),
                ('revoked_at', models.DateTimeField(blank=True, null=True)),
                ('external_id', models.CharField(blank=True, max_length=255)),
                ('version', models.PositiveIntegerField(default=1)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('parent', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='parts', to='allocations.allocation')),
            ],
            options={
                'ordering': ('-id',),
            },
        ),
        migrations.CreateModel(
            name='ApprovalCase',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('subject_version', models.PositiveIntegerField(default=1)),
                ('opened_at', models.DateTimeField()),
                ('closed_at', models.DateTimeField(blank=True, null=True)),
                ('requester', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='AllocationRequest',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('new', 'New'), ('renewal', 'Renewal'), ('change', 'Change'), ('extension', 'Extension'), ('transfer', 'Transfer'), ('boost', 'Boost'), ('shares', 'Shares')], max_length=16)),
                ('decision', models.CharField(default='draft', max_length=16)),
                ('version', models.PositiveIntegerField(default=1)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('allocation', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='requests', to='allocations.allocation')),
                ('awarded', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='awarded_by', to='allocations.allocation')),
                ('created_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('approval_case', models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='allocations.approvalcase')),
            ],
        ),
        migrations.CreateModel(
            name='ApprovalPolicy',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=63)),
                ('number', models.PositiveIntegerField(default=1)),
                ('position', models.PositiveIntegerField(default=100)),
                ('matches', models.JSONField(blank=True, default=dict)),
                ('steps', models.JSONField(blank=True, default=list)),
                ('automatic', models.CharField(blank=True, choices=[('approve', 'approve'), ('refuse', 'refuse')], max_length=8)),
                ('reason', models.CharField(blank=True, max_length=500)),
                ('hold_minutes', models.PositiveIntegerField(default=1440)),
                ('retired_at', models.DateTimeField(blank=True, null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
            options={
                'ordering': ('position', 'name'),
                'constraints': [models.UniqueConstraint(fields=('name', 'number'), name='policy_version_once'), models.UniqueConstraint(condition=models.Q(('retired_at__isnull', True)), fields=('name',), name='one_policy_version_in_force')],
            },
        ),
        migrations.AddField(
            model_name='approvalcase',
            name='policy',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='cases', to='allocations.approvalpolicy'),
        ),
        migrations.CreateModel(
            name='ApprovalStep',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveSmallIntegerField()),
                ('role', models.CharField(max_length=16)),
                ('quorum', models.PositiveSmallIntegerField(default=1)),
                ('case', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='steps', to='allocations.approvalcase')),
            ],
            options={
                'ordering': ('case', 'number'),
            },
        ),
        migrations.CreateModel(
            name='Cluster',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=63, unique=True)),
                ('kind', models.CharField(choices=[('slurm', 'Slurm'), ('kueue', 'Kueue'), ('volcano', 'Volcano'), ('kai', 'Kai'), ('yunikorn', 'Yunikorn'), ('slinky', 'Slinky')], max_length=16)),
                ('zone', models.CharField(default='UTC', max_length=64)),
                ('lifecycle', models.CharField(choices=[('ordered', 'Ordered'), ('burn_in', 'Burn In'), ('production', 'Production'), ('repair', 'Repair'), ('retired', 'Retired')], default='production', max_length=16)),
                ('contract_ends_at', models.DateTimeField(blank=True, null=True)),
                ('disclosure', models.CharField(choices=[('names', 'Names'), ('bare', 'Bare')], default='names', max_length=8)),
                ('drift_policy', models.CharField(choices=[('restore', 'Restore'), ('ask', 'Ask')], default='restore', max_length=8)),
                ('desired_generation', models.BigIntegerField(default=0)),
                ('applied_generation', models.BigIntegerField(default=0)),
                ('snapshot_version', models.BigIntegerField(default=0)),
                ('frozen_at', models.DateTimeField(blank=True, null=True)),
                ('frozen_reason', models.CharField(blank=True, max_length=500)),
                ('observed_at', models.DateTimeField(blank=True, null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
            options={
                'ordering': ('name',),
                'constraints': [models.CheckConstraint(condition=models.Q(('applied_generation__lte', models.F('desired_generation'))), name='applied_never_ahead_of_desired'), models.CheckConstraint(condition=models.Q(('name__regex', '^[a-z0-9]([a-z0-9-]*[a-z0-9])?$')), name='cluster_name_is_plain')],
            },
        ),
        migrations.AddField(
            model_name='allocation',
            name='clusters',
            field=models.ManyToManyField(blank=True, related_name='model_allocations', to='allocations.cluster'),
        ),
        migrations.CreateModel(
            name='ClusterUsername',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('username', models.CharField(max_length=63)),
                ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='usernames', to='allocations.cluster')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='cluster_usernames', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='Comment',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('text', models.CharField(max_length=4000)),
                ('reviewers_only', models.BooleanField(default=False)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('approval_case', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='comments', to='allocations.approvalcase')),
                ('author', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('request', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='comments', to='allocations.allocationrequest')),
            ],
            options={
                'ordering': ('created_at', 'id'),
            },
        ),
        migrations.CreateModel(
            name='Decision',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('verdict', models.CharField(choices=[('approve', 'Approve'), ('reject', 'Reject'), ('ask_changes', 'Ask Changes'), ('offer', 'Offer')], max_length=16)),
                ('reason', models.CharField(blank=True, max_length=2000)),
                ('counter_offer', models.JSONField(blank=True, null=True)),
                ('subject_version', models.PositiveIntegerField(default=1)),
                ('decided_at', models.DateTimeField()),
                ('approver', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='decisions', to=settings.AUTH_USER_MODEL)),
                ('on_behalf_of', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('step', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='decisions', to='allocations.approvalstep')),
            ],
            options={
                'ordering': ('decided_at', 'id'),
            },
        ),
        migrations.CreateModel(
            name='Delegation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('start_at', models.DateTimeField()),
                ('end_at', models.DateTimeField()),
                ('reason', models.CharField(blank=True, max_length=500)),
                ('ended_at', models.DateTimeField(blank=True, null=True)),
                ('from_user', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='delegations_given', to=settings.AUTH_USER_MODEL)),
                ('to_user', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='delegations_held', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='Elevation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('reason', models.CharField(max_length=500)),
                ('start_at', models.DateTimeField()),
                ('end_at', models.DateTimeField()),
                ('ended_at', models.DateTimeField(blank=True, null=True)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='elevations', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='EventSeal',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('last_transaction_id', models.BigIntegerField()),
                ('last_event_id', models.BigIntegerField()),
                ('event_count', models.PositiveIntegerField()),
                ('previous_hash', models.CharField(max_length=64)),
                ('hash', models.CharField(max_length=64, unique=True)),
                ('sealed_at', models.DateTimeField()),
            ],
            options={
                'ordering': ('id',),
                'constraints': [models.UniqueConstraint(fields=('previous_hash',), name='seals_form_one_chain')],
            },
        ),
        migrations.CreateModel(
            name='Flavor',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=63)),
                ('gpus_per_node', models.PositiveIntegerField()),
                ('nodes_per_rack', models.PositiveIntegerField()),
                ('turnaround_minutes', models.PositiveIntegerField(default=0)),
                ('gres_type', models.CharField(blank=True, max_length=63)),
                ('partition', models.CharField(blank=True, max_length=255)),
                ('node_labels', models.JSONField(blank=True, default=dict)),
                ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='flavors', to='allocations.cluster')),
                ('gpu_model', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='flavors', to='allocations.gpumodel')),
            ],
            options={
                'ordering': ('cluster', 'name'),
            },
        ),
        migrations.AddField(
            model_name='allocation',
            name='flavor',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='allocations', to='allocations.flavor'),
        ),
        migrations.AddField(
            model_name='allocation',
            name='gpu_model',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='allocations', to='allocations.gpumodel'),
        ),
        migrations.CreateModel(
            name='JobRecord',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('job_id', models.CharField(max_length=253)),
                ('account', models.CharField(blank=True, max_length=255)),
                ('username', models.CharField(blank=True, max_length=255)),
                ('gpus', models.PositiveIntegerField(default=0)),
                ('submitted_at', models.DateTimeField(null=True)),
                ('started_at', models.DateTimeField(null=True)),
                ('ended_at', models.DateTimeField(null=True)),
                ('state', models.CharField(max_length=32)),
                ('reservation', models.CharField(blank=True, max_length=64)),
                ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='job_records', to='allocations.cluster')),
                ('flavor', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='allocations.flavor')),
            ],
        ),
        migrations.CreateModel(
            name='Level',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=63)),
                ('position', models.PositiveSmallIntegerField()),
                ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='levels', to='allocations.cluster')),
            ],
            options={
                'ordering': ('cluster', 'position'),
            },
        ),
        migrations.CreateModel(
            name='Block',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=255)),
                ('parent', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='children', to='allocations.block')),
                ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='blocks', to='allocations.cluster')),
                ('level', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='blocks', to='allocations.level')),
            ],
            options={
                'ordering': ('cluster', 'name'),
            },
        ),
        migrations.CreateModel(
            name='Node',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=253)),
                ('position', models.PositiveIntegerField()),
                ('gpus', models.PositiveIntegerField(default=0)),
                ('cabinet', models.CharField(blank=True, max_length=255)),
                ('labels', models.JSONField(blank=True, default=dict)),
                ('condition', models.CharField(choices=[('healthy', 'Healthy'), ('suspect', 'Suspect'), ('failed', 'Failed'), ('unknown', 'Unknown')], default='healthy', max_length=8)),
                ('condition_since_at', models.DateTimeField(blank=True, null=True)),
                ('is_drained', models.BooleanField(default=False)),
                ('reason', models.CharField(blank=True, max_length=500)),
                ('lifecycle', models.CharField(choices=[('ordered', 'Ordered'), ('burn_in', 'Burn In'), ('production', 'Production'), ('repair', 'Repair'), ('retired', 'Retired')], default='production', max_length=16)),
                ('expected_back_at', models.DateTimeField(blank=True, null=True)),
                ('gone_at', models.DateTimeField(blank=True, null=True)),
                ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='nodes', to='allocations.cluster')),
                ('flavor', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='nodes', to='allocations.flavor')),
            ],
            options={
                'ordering': ('cluster', 'name'),
            },
        ),
        migrations.CreateModel(
            name='Outage',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=200)),
                ('reason', models.CharField(blank=True, max_length=500)),
                ('period', django.contrib.postgres.fields.ranges.DateTimeRangeField()),
                ('cancelled_at', models.DateTimeField(blank=True, null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='outages', to='allocations.cluster')),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('nodes', models.ManyToManyField(related_name='outages', to='allocations.node')),
            ],
            options={
                'ordering': ('-id',),
            },
        ),
        migrations.CreateModel(
            name='Rack',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=255)),
                ('cabinet', models.CharField(blank=True, max_length=255)),
                ('is_pseudo', models.BooleanField(default=False)),
                ('nvlink', models.CharField(choices=[('ok', 'Ok'), ('degraded', 'Degraded'), ('broken', 'Broken')], default='ok', max_length=8)),
                ('lifecycle', models.CharField(choices=[('ordered', 'Ordered'), ('burn_in', 'Burn In'), ('production', 'Production'), ('repair', 'Repair'), ('retired', 'Retired')], default='production', max_length=16)),
                ('in_service_at', models.DateTimeField(blank=True, null=True)),
                ('out_of_service_at', models.DateTimeField(blank=True, null=True)),
                ('gone_at', models.DateTimeField(blank=True, null=True)),
                ('block', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='racks', to='allocations.block')),
                ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='racks', to='allocations.cluster')),
                ('flavor', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='racks', to='allocations.flavor')),
            ],
            options={
                'ordering': ('cluster', 'name'),
            },
        ),
        migrations.CreateModel(
            name='Observation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('gpu_index', models.PositiveSmallIntegerField(blank=True, null=True)),
                ('source', models.CharField(choices=[('scheduler', 'Scheduler'), ('health_system', 'Health System'), ('person', 'Person')], max_length=16)),
                ('condition', models.CharField(max_length=16)),
                ('is_drained', models.BooleanField(default=False)),
                ('reason', models.CharField(blank=True, max_length=500)),
                ('until_at', models.DateTimeField(blank=True, null=True)),
                ('observed_at', models.DateTimeField()),
                ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='observations', to='allocations.cluster')),
                ('node', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='observations', to='allocations.node')),
                ('rack', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='observations', to='allocations.rack')),
            ],
            options={
                'ordering': ('-observed_at', '-id'),
            },
        ),
        migrations.AddField(
            model_name='node',
            name='rack',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='nodes', to='allocations.rack'),
        ),
        migrations.CreateModel(
            name='RequestVersion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('asked', models.JSONField()),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('created_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('request', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='versions', to='allocations.allocationrequest')),
            ],
        ),
        migrations.CreateModel(
            name='RunningJob',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('job_id', models.CharField(max_length=253)),
                ('account', models.CharField(blank=True, max_length=255)),
                ('username', models.CharField(blank=True, max_length=255)),
                ('tier', models.CharField(blank=True, max_length=63)),
                ('nodes', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=253), size=None)),
                ('started_at', models.DateTimeField(null=True)),
                ('ends_at', models.DateTimeField(null=True)),
                ('observed_at', models.DateTimeField()),
                ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='running_jobs', to='allocations.cluster')),
            ],
            options={
                'ordering': ('cluster', 'job_id'),
            },
        ),
        migrations.AddField(
            model_name='allocation',
            name='source',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='allocations', to='allocations.syncsource'),
        ),
        migrations.CreateModel(
            name='Team',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=63)),
                ('path', models.CharField(max_length=1000, unique=True)),
                ('account', models.CharField(max_length=63, unique=True)),
                ('title', models.CharField(blank=True, max_length=200)),
                ('shares', models.PositiveBigIntegerField(default=1)),
                ('archived_at', models.DateTimeField(blank=True, null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('version', models.PositiveIntegerField(default=1)),
                ('parent', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='children', to='allocations.team')),
            ],
            options={
                'ordering': ('path',),
            },
        ),
        migrations.AddField(
            model_name='syncsource',
            name='team',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='sync_sources', to='allocations.team'),
        ),
        migrations.CreateModel(
            name='RoleGrant',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('role', models.CharField(choices=[('approver', 'Approver'), ('operator', 'Operator'), ('auditor', 'Auditor'), ('admin', 'Admin')], max_length=8)),
                ('ended_at', models.DateTimeField(blank=True, null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('cluster', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='role_grants', to='allocations.cluster')),
                ('granted_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='role_grants', to=settings.AUTH_USER_MODEL)),
                ('team', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='role_grants', to='allocations.team')),
            ],
            options={
                'ordering': ('user', 'role'),
            },
        ),
        migrations.CreateModel(
            name='Membership',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('role', models.CharField(choices=[('member', 'Member'), ('lead', 'Lead')], max_length=8)),
                ('ended_at', models.DateTimeField(blank=True, null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='memberships', to=settings.AUTH_USER_MODEL)),
                ('team', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='memberships', to='allocations.team')),
            ],
            options={
                'ordering': ('team', 'user'),
            },
        ),
        migrations.CreateModel(
            name='Invitation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('email', models.EmailField(max_length=254)),
                ('token_hash', models.CharField(max_length=64, unique=True)),
                ('role', models.CharField(blank=True, max_length=8)),
                ('expires_at', models.DateTimeField()),
                ('used_at', models.DateTimeField(blank=True, null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('invited_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('team', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='invitations', to='allocations.team')),
            ],
        ),
        migrations.CreateModel(
            name='Event',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('verb', models.CharField(max_length=64)),
                ('subject_kind', models.CharField(max_length=32)),
                ('subject_id', models.CharField(max_length=64)),
                ('at', models.DateTimeField()),
                ('request_id', models.CharField(blank=True, max_length=64)),
                ('before', models.JSONField(null=True)),
                ('after', models.JSONField(null=True)),
                ('sentence', models.CharField(blank=True, max_length=1000)),
                ('transaction_id', models.BigIntegerField(db_default=django.db.models.expressions.RawSQL('pg_current_xact_id()::text::bigint', ()))),
                ('actor', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('cluster', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='events', to='allocations.cluster')),
                ('team', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='events', to='allocations.team')),
            ],
            options={
                'ordering': ('transaction_id', 'id'),
            },
        ),
        migrations.CreateModel(
            name='Charge',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('job', 'Job'), ('reserved_idle', 'Reserved Idle'), ('spares', 'Spares'), ('drain', 'Drain'), ('credit', 'Credit'), ('correction', 'Correction')], max_length=16)),
                ('hour_at', models.DateTimeField()),
                ('gpu_hours', models.DecimalField(decimal_places=6, max_digits=16)),
                ('subject', models.CharField(blank=True, max_length=64)),
                ('recorded_at', models.DateTimeField(auto_now_add=True)),
                ('allocation', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='charges', to='allocations.allocation')),
                ('corrects', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='corrections', to='allocations.charge')),
                ('flavor', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='charges', to='allocations.flavor')),
                ('team', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='charges', to='allocations.team')),
            ],
        ),
        migrations.AddField(
            model_name='allocationrequest',
            name='team',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='allocation_requests', to='allocations.team'),
        ),
        migrations.AddField(
            model_name='allocation',
            name='team',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='allocations', to='allocations.team'),
        ),
        migrations.AddField(
            model_name='allocation',
            name='tier',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='allocations', to='allocations.tier'),
        ),
        migrations.AddConstraint(
            model_name='approvalstep',
            constraint=models.UniqueConstraint(fields=('case', 'number'), name='step_number_once_per_case'),
        ),
        migrations.AddConstraint(
            model_name='approvalstep',
            constraint=models.CheckConstraint(condition=models.Q(('quorum__gte', 1)), name='quorum_is_at_least_one'),
        ),
        migrations.AddConstraint(
            model_name='clusterusername',
            constraint=models.UniqueConstraint(fields=('user', 'cluster'), name='one_username_per_person_and_cluster'),
        ),
        migrations.AddConstraint(
            model_name='clusterusername',
            constraint=models.UniqueConstraint(fields=('cluster', 'username'), name='username_belongs_to_one_person'),
        ),
        migrations.AddConstraint(
            model_name='comment',
            constraint=models.CheckConstraint(condition=models.Q(('request__isnull', False), ('approval_case__isnull', False), _connector='OR'), name='comment_has_a_subject'),
        ),
        migrations.AddConstraint(
            model_name='decision',
            constraint=models.UniqueConstraint(fields=('step', 'approver'), name='one_decision_per_step_and_approver'),
        ),
        migrations.AddConstraint(
            model_name='delegation',
            constraint=models.CheckConstraint(condition=models.Q(('end_at__gt', models.F('start_at'))), name='delegation_ends_after_it_starts'),
        ),
        migrations.AddConstraint(
            model_name='delegation',
            constraint=models.CheckConstraint(condition=models.Q(('from_user', models.F('to_user')), _negated=True), name='nobody_delegates_to_themselves'),
        ),
        migrations.AddConstraint(
            model_name='elevation',
            constraint=models.CheckConstraint(condition=models.Q(('end_at__gt', models.F('start_at'))), name='elevation_ends_after_it_starts'),
        ),
        migrations.AddConstraint(
            model_name='flavor',
            constraint=models.UniqueConstraint(fields=('cluster', 'name'), name='flavor_named_once_per_cluster'),
        ),
        migrations.AddConstraint(
            model_name='jobrecord',
            constraint=models.UniqueConstraint(fields=('cluster', 'job_id', 'submitted_at'), name='job_recorded_once'),
        ),
        migrations.AddConstraint(
            model_name='level',
            constraint=models.UniqueConstraint(fields=('cluster', 'position'), name='level_position_once_per_cluster'),
        ),
        migrations.AddConstraint(
            model_name='level',
            constraint=models.UniqueConstraint(fields=('cluster', 'name'), name='level_named_once_per_cluster'),
        ),
        migrations.AddConstraint(
            model_name='block',
            constraint=models.UniqueConstraint(fields=('cluster', 'level', 'name'), name='block_named_once_per_level'),
        ),
        migrations.AddIndex(
            model_name='outage',
            index=django.contrib.postgres.indexes.GistIndex(fields=['period'], name='outage_period'),
        ),
        migrations.AddConstraint(
            model_name='outage',
            constraint=models.CheckConstraint(condition=models.Q(('period__isempty', False)), name='outage_ends_after_it_starts'),
        ),
        migrations.AddConstraint(
            model_name='rack',
            constraint=models.UniqueConstraint(fields=('cluster', 'name'), name='rack_named_once_per_cluster'),
        ),
        migrations.AddConstraint(
            model_name='observation',
            constraint=models.CheckConstraint(condition=models.Q(('node__isnull', False), ('rack__isnull', False), _connector='OR'), name='observation_of_a_node_or_a_rack'),
        ),
        migrations.AddConstraint(
            model_name='node',
            constraint=models.UniqueConstraint(fields=('cluster', 'name'), name='node_named_once_per_cluster'),
        ),
        migrations.AddConstraint(
            model_name='node',
            constraint=models.UniqueConstraint(fields=('rack', 'position'), name='node_position_once_per_rack'),
        ),
        migrations.AddConstraint(
            model_name='requestversion',
            constraint=models.UniqueConstraint(fields=('request', 'number'), name='request_version_once'),
        ),
        migrations.AddConstraint(
            model_name='runningjob',
            constraint=models.UniqueConstraint(fields=('cluster', 'job_id'), name='job_seen_once_per_cluster'),
        ),
        migrations.AddConstraint(
            model_name='team',
            constraint=models.UniqueConstraint(django.db.models.functions.text.Lower('name'), models.F('parent'), name='team_named_once_among_siblings'),
        ),
        migrations.AddConstraint(
            model_name='team',
            constraint=models.CheckConstraint(condition=models.Q(('parent', models.F('id')), _negated=True), name='team_is_not_its_own_parent'),
        ),
        migrations.AddConstraint(
            model_name='team',
            constraint=models.CheckConstraint(condition=models.Q(('shares__lt', 2147483648)), name='shares_fit_every_scheduler'),
        ),
        migrations.AddConstraint(
            model_name='team',
            constraint=models.CheckConstraint(condition=models.Q(('account__regex', '^[a-z0-9]([a-z0-9_-]*[a-z0-9])?$')), name='account_is_plain'),
        ),
        migrations.AddConstraint(
            model_name='rolegrant',
            constraint=models.CheckConstraint(condition=models.Q(('team__isnull', True), ('cluster__isnull', True), _connector='OR'), name='role_has_one_scope'),
        ),
        migrations.AddConstraint(
            model_name='membership',
            constraint=models.UniqueConstraint(condition=models.Q(('ended_at__isnull', True)), fields=('team', 'user'), name='member_once_per_team'),
        ),
        migrations.AddIndex(
            model_name='event',
            index=models.Index(fields=['transaction_id', 'id'], name='event_by_commit'),
        ),
        migrations.AddIndex(
            model_name='event',
            index=models.Index(fields=['subject_kind', 'subject_id'], name='event_by_subject'),
        ),
        migrations.AddIndex(
            model_name='charge',
            index=models.Index(fields=['team', 'flavor', 'hour_at'], name='charge_by_team_and_hour'),
        ),
        migrations.AddConstraint(
            model_name='allocation',
            constraint=models.CheckConstraint(condition=models.Q(('end_at__gt', models.F('start_at'))), name='allocation_ends_after_it_starts'),
        ),
        migrations.AddConstraint(
            model_name='allocation',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('flavor__isnull', False), ('gpu_model__isnull', True)), models.Q(('flavor__isnull', True), ('gpu_model__isnull', False)), _connector='OR'), name='allocation_of_a_flavor_or_a_model'),
        ),
        migrations.AddConstraint(
            model_name='allocation',
            constraint=models.UniqueConstraint(condition=models.Q(('source__isnull', False)), fields=('source', 'external_id'), name='synced_row_once_per_source'),
        ),
    ]
