"""Every setting, read once from the environment, typed, with a default. docs/operations.md lists them."""

import contextlib
import secrets
from pathlib import Path
from urllib.parse import urlsplit

import dj_database_url
from csp.constants import NONE, SELF, UNSAFE_INLINE
from environs import Env

env = Env()
BASE_DIR = Path(__file__).resolve().parent.parent
BERTH_HOME = Path(env.str("BERTH_HOME", "") or BASE_DIR / "var")
BERTH_PORT = env.int("BERTH_PORT", 8000)
BERTH_BASE_URL = env.str("BERTH_BASE_URL", f"http://127.0.0.1:{BERTH_PORT}")
BERTH_CREDENTIALS = Path(env.str("BERTH_CREDENTIALS", "") or BERTH_HOME / "credentials")
BERTH_LABEL_PREFIX = env.str("BERTH_LABEL_PREFIX", "berth.local")
BERTH_PUSH_BACKOFF_SECONDS = (10, 3600)
BERTH_PUSH_LEASE_SECONDS = env.int("BERTH_PUSH_LEASE_SECONDS", 60)
BERTH_BEAT_SECONDS = env.float("BERTH_BEAT_SECONDS", 5.0)
BERTH_DRIFT_CHECK_SECONDS = env.float("BERTH_DRIFT_CHECK_SECONDS", 60.0)


def _secret_key() -> str:
    """BERTH_SECRET_KEY, else a key made once below BERTH_HOME with mode 0600."""
    if given := env.str("BERTH_SECRET_KEY", ""):
        return given
    path = BERTH_HOME / "secret-key"
    if not path.exists():
        BERTH_HOME.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f"secret-key.{secrets.token_hex(4)}")
        fresh.touch(mode=0o600)
        fresh.write_text(secrets.token_urlsafe(50))
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(fresh)  # whoever is first wins; everyone reads the same key
        fresh.unlink()
    return path.read_text()


SECRET_KEY = _secret_key()
DEBUG = False
_host = urlsplit(BERTH_BASE_URL).hostname or "127.0.0.1"
ALLOWED_HOSTS = env.list("BERTH_ALLOWED_HOSTS", [_host, "127.0.0.1", "localhost", "[::1]"])
IS_HTTPS = urlsplit(BERTH_BASE_URL).scheme == "https"
CSRF_TRUSTED_ORIGINS = [BERTH_BASE_URL] if IS_HTTPS else []

INSTALLED_APPS = [
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "django.contrib.messages",
    "django.contrib.postgres",
    "django.contrib.staticfiles",
    "rest_framework",
    "django_htmx",
    "axes",
    "csp",
    "allocations",
    "reservations",
    "console",
]
MIDDLEWARE = [
    "console.middleware.AnyHostForHealth",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "console.middleware.RequestId",
    "console.middleware.IdleSession",
    "console.middleware.KeepableText",
    "console.middleware.PersonZone",
    "axes.middleware.AxesMiddleware",
]
ROOT_URLCONF = "console.urls"
WSGI_APPLICATION = "console.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "console.web.access.frame",
            ]
        },
    }
]

DATABASE_URL = env.str("DATABASE_URL", "postgresql:///berth")
DATABASES = {
    "default": {
        **dj_database_url.parse(DATABASE_URL, conn_max_age=60, conn_health_checks=True),
        "TEST": {"NAME": "test_berth"},
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en-gb"
USE_I18N = False

AUTH_USER_MODEL = "allocations.User"
AUTHENTICATION_BACKENDS = ["axes.backends.AxesBackend", "django.contrib.auth.backends.ModelBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.ScryptPasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
LOGIN_URL = "sign-in"
LOGIN_REDIRECT_URL = "home"
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_FAILURE_LIMIT = 8
AXES_COOLOFF_TIME = 0.25  # hours
AXES_RESET_ON_SUCCESS = True
AXES_LOCKOUT_TEMPLATE = "sign_in_locked.html"
AXES_USERNAME_FORM_FIELD = "username"
AXES_USERNAME_CALLABLE = "console.web.sign_in.counted_name"
AXES_VERBOSE = False

SESSION_ENGINE = "console.sessions"
SESSION_COOKIE_AGE = 12 * 3600
SESSION_IDLE_SECONDS = 3600
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_HTTPONLY = False
CSRF_FAILURE_VIEW = "console.web.help.not_from_here"
CSRF_COOKIE_SAMESITE = "Lax"
if IS_HTTPS:
    SESSION_COOKIE_NAME = "__Host-berth-session"
    CSRF_COOKIE_NAME = "__Host-berth-csrf"
    SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = True
    SECURE_SSL_REDIRECT = True
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SECURE_HSTS_SECONDS = 31_536_000
    SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = True
SECURE_REDIRECT_EXEMPT = [r"^healthz/(live|ready)$"]  # probes ask the process itself, without TLS
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CONTENT_TYPE_NOSNIFF = True
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "style-src-attr": [UNSAFE_INLINE],
        "img-src": [SELF, "data:", "blob:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "base-uri": [NONE],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    }
}

STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATIC_ROOT = BERTH_HOME / "static"
WHITENOISE_USE_FINDERS = True
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}

CELERY_BROKER_URL = env.str("CELERY_BROKER_URL", "memory://")
CELERY_BROKER_TRANSPORT_OPTIONS: dict[str, object] = {}
if CELERY_BROKER_URL.startswith("redis"):
    CELERY_BROKER_TRANSPORT_OPTIONS = {
        "visibility_timeout": 60,
        "unacked_restore_interval": 5,
        "unacked_restore_throttle": 1,
        "socket_timeout": 5,
        "socket_connect_timeout": 2,
    }
elif CELERY_BROKER_URL.startswith("filesystem"):
    _folder = BERTH_HOME / "broker"
    CELERY_BROKER_TRANSPORT_OPTIONS = {
        "data_folder_in": str(_folder / "messages"),
        "data_folder_out": str(_folder / "messages"),
        "control_folder": str(_folder / "control"),
        "polling_interval": 0.1,
    }
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TASK_IGNORE_RESULT = True  # the rows hold every result
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TIMEZONE = "UTC"
# The rows are the truth and beat sweeps, so a publish is tried once: task_publish_retry=False alone blocks about six
# seconds on a dead broker, because the connection underneath retries by itself.
CELERY_TASK_PUBLISH_RETRY = True
CELERY_TASK_PUBLISH_RETRY_POLICY = {"max_retries": 0}
CELERY_BEAT_SCHEDULE = {
    "sweep": {"task": "console.tasks.sweep", "schedule": BERTH_BEAT_SECONDS},
    "observe": {"task": "console.tasks.observe_all", "schedule": BERTH_DRIFT_CHECK_SECONDS},
    "lapse": {"task": "console.tasks.lapse_holds", "schedule": 30.0},
    "seal": {"task": "console.tasks.seal_events", "schedule": 60.0},
    "forget": {"task": "console.tasks.forget_sessions", "schedule": 600.0},
}

REST_FRAMEWORK = {
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_PERMISSION_CLASSES": ["console.api.authentication.HasScope"],
    "DEFAULT_AUTHENTICATION_CLASSES": ["console.api.authentication.TokenAuthentication"],
    "EXCEPTION_HANDLER": "console.errors.problem",
    "UNAUTHENTICATED_USER": None,
}
DATA_UPLOAD_MAX_MEMORY_SIZE = 1_000_000

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {
            "class": "console.log_lines.Line",
            "format": "%(asctime)s %(levelname)s %(name)s %(request_id)s %(message)s",
        }
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": env.str("BERTH_LOG_LEVEL", "INFO")},
    "loggers": {"axes": {"level": "WARNING"}},
}
SILENCED_SYSTEM_CHECKS = ["axes.W006"]
