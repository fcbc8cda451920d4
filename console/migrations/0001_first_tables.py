import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('allocations', '0002_append_only'),
    ]

    operations = [
        migrations.CreateModel(
            name='ApiToken',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='api_tokens', to=settings.AUTH_USER_MODEL)),
                ('name', models.CharField(max_length=100)),
                ('kind', models.CharField(default='pat', max_length=8)),
                ('prefix', models.CharField(max_length=16, unique=True)),
                ('secret_hash', models.CharField(max_length=64)),
                ('scopes', models.JSONField(default=list)),
                ('source', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='allocations.syncsource')),
                ('expires_at', models.DateTimeField()),
                ('last_used_at', models.DateTimeField(blank=True, null=True)),
                ('revoked_at', models.DateTimeField(blank=True, null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
            options={
                'indexes': [],
                'constraints': [],
            },
        ),
        migrations.CreateModel(
            name='ClusterEndpoint',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('cluster', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='endpoint', to='allocations.cluster')),
                ('driver', models.CharField(choices=[('slurm_cli', 'Slurm Cli'), ('slurmrestd', 'Slurmrestd'), ('kubernetes', 'Kubernetes'), ('files', 'Files')], max_length=16)),
                ('options', models.JSONField(blank=True, default=dict)),
                ('credential', models.CharField(blank=True, max_length=500)),
                ('modes', models.JSONField(default=dict)),
                ('state', models.CharField(choices=[('idle', 'Idle'), ('pending', 'Pending'), ('applying', 'Applying'), ('converging', 'Converging'), ('verified', 'Verified'), ('waiting', 'Waiting'), ('drifted', 'Drifted'), ('failed', 'Failed'), ('unreachable', 'Unreachable')], default='idle', max_length=16)),
                ('sentence', models.CharField(blank=True, max_length=1000)),
                ('failures', models.PositiveIntegerField(default=0)),
                ('next_push_at', models.DateTimeField(blank=True, null=True)),
                ('attempt', models.BigIntegerField(default=0)),
                ('lease_until', models.DateTimeField(blank=True, null=True)),
                ('lease_holder', models.CharField(blank=True, max_length=255)),
                ('read_at', models.DateTimeField(blank=True, null=True)),
                ('verified_at', models.DateTimeField(blank=True, null=True)),
                ('tried_generation', models.BigIntegerField(default=-1)),
                ('version_seen', models.CharField(blank=True, max_length=100)),
            ],
            options={
                'ordering': ('cluster',),
                'indexes': [],
                'constraints': [],
            },
        ),
        migrations.CreateModel(
            name='Notice',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='notices', to=settings.AUTH_USER_MODEL)),
                ('event', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='allocations.event')),
                ('needs_you', models.BooleanField(default=False)),
                ('sentence', models.CharField(max_length=500)),
                ('href', models.CharField(max_length=500)),
                ('done_at', models.DateTimeField(blank=True, null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('user', 'event'), name='notice_once_per_person_and_event')],
                'indexes': [],
            },
        ),
        migrations.CreateModel(
            name='Webhook',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='webhooks', to=settings.AUTH_USER_MODEL)),
                ('url', models.URLField(max_length=500)),
                ('kinds', models.JSONField(default=list)),
                ('secrets', models.JSONField(default=list)),
                ('disabled_at', models.DateTimeField(blank=True, null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
            options={
                'indexes': [],
                'constraints': [],
            },
        ),
        migrations.CreateModel(
            name='Delivery',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('webhook', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='console.webhook')),
                ('notice', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='console.notice')),
                ('body', models.JSONField(default=dict)),
                ('tries', models.PositiveIntegerField(default=0)),
                ('next_try_at', models.DateTimeField(blank=True, null=True)),
                ('delivered_at', models.DateTimeField(blank=True, null=True)),
                ('last_answer', models.CharField(blank=True, max_length=500)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
            options={
                'indexes': [],
                'constraints': [],
            },
        ),
        migrations.CreateModel(
            name='FeedCursor',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=63, unique=True)),
                ('transaction_id', models.BigIntegerField(default=0)),
                ('event_id', models.BigIntegerField(default=0)),
            ],
            options={
                'indexes': [],
                'constraints': [],
            },
        ),
        migrations.CreateModel(
            name='Heartbeat',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('part', models.CharField(max_length=32, unique=True)),
                ('at', models.DateTimeField()),
            ],
            options={
                'indexes': [],
                'constraints': [],
            },
        ),
        migrations.CreateModel(
            name='IdempotencyKey',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('token', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='console.apitoken')),
                ('method', models.CharField(max_length=8)),
                ('path', models.CharField(max_length=500)),
                ('key', models.CharField(max_length=255)),
                ('body_hash', models.CharField(max_length=64)),
                ('status', models.PositiveSmallIntegerField()),
                ('answer', models.JSONField()),
                ('etag', models.CharField(blank=True, max_length=100)),
                ('created_at', models.DateTimeField()),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('token', 'method', 'path', 'key'), name='idempotency_key_once')],
                'indexes': [],
            },
        ),
        migrations.CreateModel(
            name='Installation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('code', models.CharField(max_length=16, unique=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
            options={
                'indexes': [],
                'constraints': [],
            },
        ),
        migrations.CreateModel(
            name='NoticeChoice',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='notice_choices', to=settings.AUTH_USER_MODEL)),
                ('kind', models.CharField(max_length=64)),
                ('channel', models.CharField(max_length=16)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('user', 'kind', 'channel'), name='notice_choice_once')],
                'indexes': [],
            },
        ),
        migrations.CreateModel(
            name='ObservedObject',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='observed_objects', to='allocations.cluster')),
                ('object_class', models.CharField(max_length=64)),
                ('name', models.CharField(max_length=253)),
                ('attributes', models.JSONField(default=dict)),
                ('state', models.CharField(choices=[('in_step', 'In Step'), ('drifted', 'Drifted'), ('missing', 'Missing'), ('unwanted', 'Unwanted'), ('foreign', 'Foreign')], max_length=16)),
                ('changes', models.JSONField(default=list)),
                ('observed_at', models.DateTimeField()),
                ('since_at', models.DateTimeField()),
            ],
            options={
                'ordering': ('cluster', 'object_class', 'name'),
                'constraints': [models.UniqueConstraint(fields=('cluster', 'object_class', 'name'), name='object_observed_once')],
                'indexes': [],
            },
        ),
        migrations.CreateModel(
            name='Operation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('owner', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='operations', to=settings.AUTH_USER_MODEL)),
                ('kind', models.CharField(max_length=64)),
                ('payload', models.JSONField(default=dict)),
                ('state', models.CharField(default='queued', max_length=16)),
                ('progress_percent', models.PositiveSmallIntegerField(default=0)),
                ('attempt', models.PositiveIntegerField(default=0)),
                ('lease_until', models.DateTimeField(blank=True, null=True)),
                ('available_at', models.DateTimeField()),
                ('result', models.JSONField(blank=True, null=True)),
                ('error', models.CharField(blank=True, max_length=1000)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'indexes': [],
                'constraints': [],
            },
        ),
        migrations.CreateModel(
            name='OwnedObject',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='owned_objects', to='allocations.cluster')),
                ('object_class', models.CharField(max_length=64)),
                ('name', models.CharField(max_length=253)),
                ('generation', models.BigIntegerField()),
                ('created_at', models.DateTimeField()),
                ('deleted_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'constraints': [models.UniqueConstraint(condition=models.Q(('deleted_at__isnull', True)), fields=('cluster', 'object_class', 'name'), name='owned_once')],
                'indexes': [],
            },
        ),
        migrations.CreateModel(
            name='PushPlan',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='plans', to='allocations.cluster')),
                ('generation', models.BigIntegerField()),
                ('attempt', models.BigIntegerField(default=0)),
                ('state', models.CharField(choices=[('dry_run', 'Dry Run'), ('waiting', 'Waiting'), ('approved', 'Approved'), ('applying', 'Applying'), ('applied', 'Applied'), ('verified', 'Verified'), ('failed', 'Failed'), ('superseded', 'Superseded'), ('discarded', 'Discarded')], max_length=16)),
                ('is_drift', models.BooleanField(default=False)),
                ('compromises', models.JSONField(default=list)),
                ('gate_reasons', models.JSONField(default=list)),
                ('fingerprint', models.CharField(blank=True, max_length=64)),
                ('approved_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('sentence', models.CharField(blank=True, max_length=1000)),
                ('created_at', models.DateTimeField()),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'ordering': ('-id',),
                'indexes': [models.Index(fields=['cluster', '-id'], name='plan_by_cluster')],
                'constraints': [],
            },
        ),
        migrations.CreateModel(
            name='PushStep',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('plan', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='steps', to='console.pushplan')),
                ('number', models.PositiveIntegerField()),
                ('verb', models.CharField(max_length=8)),
                ('object_class', models.CharField(max_length=64)),
                ('name', models.CharField(max_length=253)),
                ('changes', models.JSONField(default=list)),
                ('commands', models.JSONField(default=list)),
                ('state', models.CharField(choices=[('planned', 'Planned'), ('applying', 'Applying'), ('applied', 'Applied'), ('verified', 'Verified'), ('failed', 'Failed'), ('skipped', 'Skipped')], default='planned', max_length=16)),
                ('output', models.TextField(blank=True)),
                ('started_at', models.DateTimeField(blank=True, null=True)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'ordering': ('plan', 'number'),
                'constraints': [models.UniqueConstraint(fields=('plan', 'number'), name='step_number_once_per_plan')],
                'indexes': [],
            },
        ),
        migrations.CreateModel(
            name='Quote',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('token_hash', models.CharField(max_length=64, unique=True)),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('preview', models.JSONField()),
                ('expires_at', models.DateTimeField()),
                ('used_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'indexes': [],
                'constraints': [],
            },
        ),
        migrations.CreateModel(
            name='WhatIfRun',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='what_if_runs', to=settings.AUTH_USER_MODEL)),
                ('team', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='allocations.team')),
                ('asked', models.JSONField()),
                ('result', models.JSONField(blank=True, null=True)),
                ('state', models.CharField(default='queued', max_length=16)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'indexes': [],
                'constraints': [],
            },
        ),
    ]
