"""PostgreSQL of a managed machine: a cluster that is made once, whoever owns its database, and its archive. In the
image of databases beside `machine`, which does everything else.

Two services: `postgresql` makes the cluster on the disk with the data, or restores it there, and becomes the server;
`keeper` looks after the server and archives. Environment, for machines that are no guest: MACHINE_DATA (folder instead
of a disk), MACHINE_POSTGRESQL_USER (postgres), MACHINE_POSTGRESQL_PORT (5432), MACHINE_ARCHIVE (HOST:PORT instead of
what the document says), MACHINE_POINT_SECONDS (60: how long what is written may be without a copy in the archive),
MACHINE_KEEP_SECONDS (5: how often the server is asked), MACHINE_STORE_SECONDS (15: how long a store may be silent),
MACHINE_RESUME_SECONDS (300: how often a paused archive is tried).
"""
import glob
import json
import os
import pwd
import re
import secrets
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from datetime import datetime, timezone

import __main__ as machine

HAS_DISK = "MACHINE_DATA" not in os.environ
DATA = os.environ.get("MACHINE_DATA", "/var/lib/svccloud-data")
MAIN = os.path.join(DATA, "main")
OWNER = os.path.join(DATA, "owner.json")
POINTS = os.path.join(DATA, "points")
ARCHIVED = os.path.join(DATA, "archive.json")
PAUSE = os.path.join(DATA, "archive-pause.json")
SKIP = os.path.join(DATA, "archive-skip")
SHORTENED = os.path.join(DATA, "archive-shortened.json")
BEGUN = os.path.join(machine.LIB, "file-system-begun")
SOCKETS = os.path.join(machine.RUN, "postgresql")
STATE = os.path.join(machine.RUN, "postgresql.state")
KEPT = os.path.join(machine.RUN, "keeper.json")
PUSHED = os.path.join(SOCKETS, "archive-push.log")
USER = os.environ.get("MACHINE_POSTGRESQL_USER", "postgres")
PORT = os.environ.get("MACHINE_POSTGRESQL_PORT", "5432")
ARCHIVE = os.environ.get("MACHINE_ARCHIVE")
POINT_SECONDS = float(os.environ.get("MACHINE_POINT_SECONDS", "60"))
KEEP_SECONDS = float(os.environ.get("MACHINE_KEEP_SECONDS", "5"))
STORE_SECONDS = int(os.environ.get("MACHINE_STORE_SECONDS", "15"))
RESUME_SECONDS = float(os.environ.get("MACHINE_RESUME_SECONDS", "300"))
WATCH_SECONDS = min(KEEP_SECONDS, 1)
SILENT_SECONDS = 60 + 2 * KEEP_SECONDS
LATE_SECONDS = 3 * POINT_SECONDS
INFO_SECONDS = 600
INFO_FAILED = 99
RETRY_SECONDS = 60
SQL_SECONDS = 30
INITIALISE_SECONDS = 600
DISK_SECONDS = 60
STOP_SECONDS = 60
BACKUPS_MAXIMUM = 64
GAPS_MAXIMUM = 16
DETAIL_CHARACTERS = 250
SEGMENTS_PER_LOG = 256
SEGMENT_BYTES = 16 << 20
DAY_SECONDS = 86_400
SEGMENT = re.compile(r"([0-9A-F]{24})-[0-9a-f]{40}")
STANZA = "main"
# What the store answers to whoever has no room left.
FULL = "QuotaExceeded"
# In the archive beside the stanza: removed when a full archive has no room for the list of what is left of it.
RESERVE = "reserve"
RESERVE_BYTES = 1 << 20
# A store measures what it holds from time to time: how often, and at what distance, it is asked after a removal.
NOTICE_TRIES = 6
NOTICE_SECONDS = 5
READY = re.compile(r"[0-9A-F]{24}\.ready")


# --- programs ---------------------------------------------------------------------------------------------------------

def programs():
    """Folder of PostgreSQL's programs."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda path: int(path.split("/")[-2]))
    if not found:
        raise machine.Refused("PostgreSQL is not installed")
    return found[-1]


def as_user():
    """How a program is run as the user of the server, who alone reads its files."""
    if os.getuid() != 0:
        return {}
    account = pwd.getpwnam(USER)
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}


def give(path):
    if os.getuid() == 0:
        account = pwd.getpwnam(USER)
        os.chown(path, account.pw_uid, account.pw_gid)


def call(*command, seconds, input_text=None):
    """What it writes. Throws Refused when it fails, or does not end in time."""
    try:
        done = subprocess.run(
            command, input=input_text, capture_output=True, text=True, timeout=seconds, cwd="/", **as_user()
        )
    except FileNotFoundError:
        raise machine.Refused(f"{command[0]} is not installed")
    except subprocess.TimeoutExpired:
        raise machine.Refused(f"{os.path.basename(command[0])} did not end in {seconds} seconds")
    if done.returncode != 0:
        said = " ".join((done.stderr.strip() or done.stdout.strip()).split())
        raise machine.Refused(f"{os.path.basename(command[0])}: {said[-DETAIL_CHARACTERS:]}")
    return done.stdout


def sql(text, sockets=SOCKETS, seconds=SQL_SECONDS):
    """Lines of the answers; each statement is a transaction of its own."""
    options = ["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", sockets, "-p", PORT, "-U", "postgres"]
    output = call(f"{programs()}/psql", *options, "-d", "postgres", "-f", "-", seconds=seconds, input_text=text)
    return [line for line in output.split("\n") if line != ""]


def accepts(sockets=SOCKETS):
    try:
        return sql("select 1", sockets) == ["1"]
    except machine.Refused:
        return False


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


def name(text):
    return '"' + text.replace('"', '""') + '"'


def write_json(path, value):
    machine.write(f"{path}.new", json.dumps(value))
    os.rename(f"{path}.new", path)


def keep_json(path, value):
    """Survives whatever happens once this returns."""
    write_json(path, value)
    machine.sync_folder(os.path.dirname(path))


def remove(path):
    """The same of its absence."""
    if os.path.exists(path):
        os.unlink(path)
        machine.sync_folder(os.path.dirname(path))


# --- what a document comes to -----------------------------------------------------------------------------------------

def lay_out(section, folder):
    def put(file, text, mode=0o600):
        machine.write(os.path.join(folder, file), text, mode)
        give(os.path.join(folder, file))

    put("server.crt", section["certificate"])
    put("server.key", section["key"])
    put("postgresql.conf", postgresql_conf(section))
    put("pg_hba.conf", pg_hba_conf(section))
    put("pg_ident.conf", "")
    for purpose in ("archive", "restore"):
        if purpose in section:
            put(f"{purpose}.crt", section[purpose]["repository"]["authority"])
            put(f"{purpose}.conf", pgbackrest_conf(section, purpose))


def validate(section, folder):
    """What the server would only find out when it runs."""
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(os.path.join(folder, "server.crt"), os.path.join(folder, "server.key"))
    except (ssl.SSLError, ValueError) as error:
        raise machine.Refused(f"the certificate cannot be used: {error}")
    call(f"{programs()}/postgres", "-C", "port", "-c", f"config_file={folder}/postgresql.conf", seconds=SQL_SECONDS)


def postgresql_conf(section):
    current = machine.CURRENT
    push = f'pgbackrest --config={current}/archive.conf --stanza={STANZA} archive-push "%p"'
    # What the last attempt has said stays while the next one goes on.
    push = f"{push} > {PUSHED}.new 2>&1; code=$?; mv {PUSHED}.new {PUSHED}; exit $code"
    # Nothing is skipped that the record of the pause does not account for.
    push = f"test -s {PAUSE} && test -e {SKIP} && exit 0; {push}"
    settings = {
        "data_directory": MAIN,
        "hba_file": f"{current}/pg_hba.conf",
        "ident_file": f"{current}/pg_ident.conf",
        "listen_addresses": "*",
        "port": PORT,
        "unix_socket_directories": SOCKETS,
        "ssl": "on",
        "ssl_cert_file": f"{current}/server.crt",
        "ssl_key_file": f"{current}/server.key",
        "ssl_min_protocol_version": "TLSv1.2",
        "password_encryption": "scram-sha-256",
        "wal_level": "replica",
        # Always: it could not be switched on without a restart.
        "archive_mode": "on",
        "archive_command": push if "archive" in section else "/bin/true",
        "jit": "off",
        "log_timezone": "UTC",
        **section.get("settings", {}),
    }
    return "".join(f"{key} = {quoted(value)}\n" for key, value in settings.items())


def pg_hba_conf(section):
    """Over TLS, as the owner, from the networks; everything else is refused. The folder of the socket is the server's
    own."""
    whom = f"{name(section['database'])} {name(section['owner'])}"
    lines = [f"hostssl {whom} {network} scram-sha-256" for network in section["networks"]]
    return "\n".join(["local all postgres trust", *lines, ""])


def pgbackrest_conf(section, purpose):
    repository = section[purpose]["repository"]
    host, port = ARCHIVE.rsplit(":", 1) if ARCHIVE else (None, repository["port"])
    settings = {
        "repo1-type": "s3",
        "repo1-path": "/archive",
        "repo1-s3-bucket": repository["bucket"],
        "repo1-s3-endpoint": repository["endpoint"],
        "repo1-s3-key": repository["accessKeyId"],
        "repo1-s3-key-secret": repository["secretAccessKey"],
        "repo1-s3-region": repository["region"],
        "repo1-s3-uri-style": "path",
        "repo1-storage-port": port,
        "repo1-storage-ca-file": f"{machine.CURRENT}/{purpose}.crt",
        "repo1-cipher-type": "aes-256-cbc",
        "repo1-cipher-pass": repository["cipherKey"],
        "compress-type": "zst",
        "log-level-console": "off",
        "log-level-stderr": "error",
        "log-level-file": "off",
        "log-timestamp": "n",
        "lock-path": SOCKETS,
        # A store that is down is noticed in time; a checkpoint may take a while.
        "io-timeout": STORE_SECONDS,
        "db-timeout": 300,
        "protocol-timeout": 330,
    }
    if host is not None:
        settings["repo1-storage-host"] = host
    if purpose == "restore":
        # A segment for each minute of the day: the next ones are fetched while one is repeated.
        settings |= {"archive-async": "y", "spool-path": os.path.join(DATA, "spool"), "process-max": 2}
        place = {"pg1-path": os.path.join(DATA, "restoring")}
    else:
        settings |= {
            "repo1-bundle": "y",
            "repo1-retention-full-type": "time",
            "repo1-retention-full": section["archive"]["retentionDays"],
            "start-fast": "y",
            "archive-timeout": 120,
        }
        place = {"pg1-path": MAIN, "pg1-port": PORT, "pg1-socket-path": SOCKETS, "pg1-user": "postgres"}
    lines = ["[global]", *settings_of(settings), "", f"[{STANZA}]", *settings_of(place), ""]
    return "\n".join(lines)


def settings_of(settings):
    return [f"{key}={value}" for key, value in settings.items()]


# --- the disk and what is made on it ----------------------------------------------------------------------------------

def say(state, detail=""):
    write_json(STATE, {"state": state, "detail": detail})


def serve():
    """Becomes the server, once there is a cluster."""
    # What changes meanwhile the server reads when it starts.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    # What it has started ends with it.
    signal.signal(signal.SIGINT, lambda *_: sys.exit(0))
    section = machine.current_document()["postgresql"]
    try:
        prepare(section)
    except (machine.Refused, OSError) as error:
        say("failed", str(error)[:DETAIL_CHARACTERS])
        time.sleep(5)
        raise SystemExit(f"PostgreSQL cannot be started: {error}")
    say("running")
    become_user()
    server = f"{programs()}/postgres"
    os.execv(server, [server, "-D", MAIN, "-c", f"config_file={machine.CURRENT}/postgresql.conf"])


def become_user():
    if os.getuid() == 0:
        account = pwd.getpwnam(USER)
        os.setgroups([])
        os.setgid(account.pw_gid)
        os.setuid(account.pw_uid)


def prepare(section):
    os.makedirs(SOCKETS, 0o700, exist_ok=True)
    give(SOCKETS)
    say("preparing")
    find_disk(section["diskSerial"])
    give(DATA)
    # Whatever was begun and not finished is begun anew. What is finished has its name, and is never made again.
    for begun in ("initial", "restoring", "spool"):
        shutil.rmtree(os.path.join(DATA, begun), ignore_errors=True)
    if os.path.exists(MAIN):
        return
    if "restore" in section:
        restore(section)
    else:
        initialise()


def find_disk(serial):
    if not HAS_DISK:
        os.makedirs(DATA, 0o755, exist_ok=True)
        return
    if os.path.ismount(DATA):
        return
    device = f"/dev/disk/by-id/virtio-{serial}"
    if not machine.wait_until(lambda: os.path.exists(device), DISK_SECONDS):
        raise machine.Refused("the disk with the data is not there")
    have_file_system(device, serial)
    os.makedirs(DATA, 0o755, exist_ok=True)
    machine.run("mount", "-o", "noatime,discard", device, DATA, seconds=INITIALISE_SECONDS)


def have_file_system(device, serial):
    """Made on a blank disk, and once more where that was not finished: what is finished is known by its superblock, which
    is written last. Nothing else is ever overwritten."""
    known = subprocess.run(["blkid", "-p", "-o", "value", "-s", "TYPE", device], capture_output=True, text=True)
    kind = known.stdout.strip()
    if kind == "" and known.returncode == 2 and (is_blank(device) or machine.read_json(BEGUN) == serial):
        machine.write(BEGUN, json.dumps(serial))
        machine.sync_folder(machine.LIB)
        machine.run("mkfs.ext4", "-q", "-F", "-m", "0", "-L", "database", device, seconds=INITIALISE_SECONDS)
    elif kind != "ext4":
        raise machine.Refused(f"the disk holds something else: {kind or 'no file system'}")
    if os.path.exists(BEGUN):
        os.unlink(BEGUN)
        machine.sync_folder(machine.LIB)


def is_blank(device):
    with open(device, "rb") as disk:
        return not any(disk.read(1 << 20))


def initialise():
    say("preparing", "the cluster is being made")
    initial = os.path.join(DATA, "initial")
    options = ["--encoding=UTF8", "--locale=C.UTF-8", "--auth=trust", "--data-checksums", "--username=postgres"]
    call(f"{programs()}/initdb", "-D", initial, *options, seconds=INITIALISE_SECONDS)
    keep(initial)


def keep(made):
    os.rename(made, MAIN)
    machine.sync_folder(DATA)


# --- restoring --------------------------------------------------------------------------------------------------------

def restore(section):
    """A cluster as another one was at a moment. It archives nothing of its own before it is there as a whole: its
    archive begins with a base backup of it."""
    say("restoring", "the base backup is being copied")
    restoring, spool = [os.path.join(DATA, part) for part in ("restoring", "spool")]
    for folder in (restoring, spool):
        os.makedirs(folder, 0o700)
        give(folder)
    target = section["restore"].get("targetTime")
    until = ["--type=default"]
    if target is not None:
        until = ["--type=time", f"--target={moment_of(target)}", "--target-action=promote"]
    pgbackrest("restore", *until, "--archive-mode=off", "restore", seconds=None)
    say("restoring", "what was written since the base backup is being repeated")
    sockets = os.path.join(machine.RUN, "restoring")
    os.makedirs(sockets, 0o700, exist_ok=True)
    give(sockets)
    settings = {
        "listen_addresses": "",
        "unix_socket_directories": sockets,
        "port": PORT,
        "hba_file": f"{machine.CURRENT}/pg_hba.conf",
        "ssl": "off",
        "archive_mode": "off",
        # Nobody is let in before all is repeated, so that it needs no room for as many as the origin had.
        "hot_standby": "off",
        "log_timezone": "UTC",
    }
    options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
    server = subprocess.Popen([f"{programs()}/postgres", "-D", restoring, *options], cwd="/", **as_user())
    try:
        while not accepts(sockets):
            if server.poll() is not None:
                raise machine.Refused("the archive does not reach to that moment: PostgreSQL ended on the way there")
            time.sleep(0.5)
        # Nobody signs in by what the origin's password was.
        ensure_owner(section, sockets)
        sql("checkpoint", sockets, seconds=INITIALISE_SECONDS)
    finally:
        if server.poll() is None:
            server.send_signal(signal.SIGINT)
            server.wait()
    # How to restore stands in it, and is over.
    machine.write(os.path.join(restoring, "postgresql.auto.conf"), "")
    give(os.path.join(restoring, "postgresql.auto.conf"))
    shutil.rmtree(spool, ignore_errors=True)
    keep(restoring)


def moment_of(text):
    """As PostgreSQL and pgBackRest both read it."""
    moment = datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(timezone.utc)
    return moment.strftime("%Y-%m-%d %H:%M:%S.%f+00")


def pgbackrest_command(purpose, *options):
    return ["pgbackrest", f"--config={machine.CURRENT}/{purpose}.conf", f"--stanza={STANZA}", *options]


def pgbackrest(purpose, *options, seconds):
    return call(*pgbackrest_command(purpose, *options), seconds=seconds)


# --- the owner --------------------------------------------------------------------------------------------------------

def take_over(before, document):
    """The document holds once the server has its password. Before its first start there is nothing to wait for: the
    keeper sees to it."""
    if accepts():
        return ensure_owner(document["postgresql"])
    if "postgresql" in before and not machine.wait_until(accepts, machine.START_SECONDS):
        raise machine.Refused("PostgreSQL does not answer")
    if "postgresql" in before:
        ensure_owner(document["postgresql"])


def wanted_owner(section):
    return {key: section[key] for key in ("database", "owner", "passwordVerifier", "passwordGeneration")}


def ensure_owner(section, sockets=SOCKETS):
    """Role and database are there, and the role has this password; sessions of another one are ended."""
    wanted = wanted_owner(section)
    if machine.read_json(OWNER) == wanted:
        return
    database, owner = section["database"], section["owner"]
    sql(
        f"""
        select not exists (select from pg_roles where rolname = {quoted(owner)}) as missing \\gset
        \\if :missing
        create role {name(owner)};
        \\endif
        alter role {name(owner)} login password {quoted(section['passwordVerifier'])} valid until 'infinity';
        select not exists (select from pg_database where datname = {quoted(database)}) as missing \\gset
        \\if :missing
        create database {name(database)} owner {name(owner)};
        \\endif
        alter database {name(database)} with allow_connections true;
        grant connect on database {name(database)} to {name(owner)};
        revoke connect, temporary on database {name(database)}, postgres, template1 from public;
        select pg_terminate_backend(pid) from pg_stat_activity where usename = {quoted(owner)};
        """,
        sockets,
    )
    write_json(OWNER, wanted)


def signs_in(section):
    """A condition of SQL: whether the owner gets into the database with the password that the platform has."""
    return f"""exists (
        select from pg_authid role, pg_database base
        where role.rolname = {quoted(section['owner'])} and role.rolcanlogin
            and role.rolpassword = {quoted(section['passwordVerifier'])}
            and (role.rolvaliduntil is null or role.rolvaliduntil > now())
            and base.datname = {quoted(section['database'])} and base.datallowconn
            and has_database_privilege(role.oid, base.oid, 'connect'))"""


# --- the archive ------------------------------------------------------------------------------------------------------

def index_of(segment):
    return int(segment[8:16], 16) * SEGMENTS_PER_LOG + int(segment[16:], 16)


def window(backups, segments, points):
    """From when to when the cluster can be restored to any moment, and from when to when not although to earlier ones:
    {"earliest", "latest", "gaps"} in seconds, labels of the backups that can be restored, and whether a segment is
    missing after the newest backup. `backups` are {label, stop, first, last} with the segments that each needs,
    `segments` what is archived, and `points` (moment, segment): what was committed until the moment is in segments
    until this one. All of one timeline, oldest first."""
    ends, end = {}, None
    for segment in sorted(segments, reverse=True):
        # The last one that follows without a break.
        end = end if end is not None and ends and index_of(segment) + 1 == before else segment
        ends[segment], before = end, index_of(segment)
    spans, restorable = [], []
    for backup in backups:
        end = ends.get(backup["first"])
        if end is None or end < backup["last"]:
            continue
        restorable.append(backup["label"])
        moments = [moment for moment, segment in points if backup["last"] <= segment <= end]
        # The backup can be gone back to once its last moment is over.
        begin = backup["stop"] + 1
        if moments and moments[-1] >= begin:
            spans.append((begin, moments[-1]))
    whole = []
    for begin, last in sorted(spans):
        if whole and begin <= whole[-1][1]:
            whole[-1] = (whole[-1][0], max(whole[-1][1], last))
        else:
            whole.append((begin, last))
    gaps = [{"from": one[1], "to": other[0]} for one, other in zip(whole, whole[1:])]
    return {
        "earliest": whole[0][0] if whole else None,
        "latest": whole[-1][1] if whole else None,
        "gaps": gaps[-GAPS_MAXIMUM:],
        "restorable": restorable,
        "isTorn": bool(backups) and backups[-1]["label"] in restorable and ends[backups[-1]["first"]] != max(segments),
    }


def slot_before(now, at):
    """The newest moment of a full backup by the schedule, in seconds."""
    midnight = now - now % DAY_SECONDS
    slot = midnight + at["hour"] * 3_600 + at["minute"] * 60
    return slot if slot <= now else slot - DAY_SECONDS


def iso(seconds):
    """In milliseconds, never later than it was."""
    if seconds is None:
        return None
    whole = datetime.fromtimestamp(int(seconds * 1000) / 1000, timezone.utc)
    return whole.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def is_pressed(free, size, waiting):
    """Whether the segments that wait to be archived must be released, in bytes: less than a fifth of the disk is free,
    and at least a quarter of what would be free without them is theirs. A disk that its data fills keeps them for
    longer, so that a store that is away for minutes costs it nothing."""
    return free * 5 < size and waiting * 3 >= free


def waiting_bytes():
    """Of the segments that are not archived."""
    try:
        names = os.listdir(os.path.join(MAIN, "pg_wal/archive_status"))
    except FileNotFoundError:
        return 0
    return SEGMENT_BYTES * sum(READY.fullmatch(each) is not None for each in names)


def end_pushes():
    """Ends attempts to archive: a store that is silent holds one up for minutes."""
    config = f"--config={machine.CURRENT}/archive.conf"
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path) as file:
                words = file.read().split("\0")
            if config in words and "archive-push" in words:
                os.kill(int(path.split("/")[2]), signal.SIGTERM)
        except (OSError, UnicodeDecodeError):
            continue


class Archivist:
    """Makes base backups when they are due, and points: a commit whose segment is archived at once, so that every
    moment before it can be restored to. A thread of its own, because the store may be slow."""

    def __init__(self):
        # There is one; and what it was when it was opened last, and when.
        self.is_open = False
        self.opened, self.opened_at = None, 0
        self.trouble = ""
        self.failure = ""
        self.backup = None
        self.said = None
        self.tried_at = 0
        self.looked_at = 0
        self.pointed_at = 0
        # The first segment that is archived while this runs: of earlier ones only the archive itself knows.
        self.since = None
        self.pending = []
        # Of the disk with the data, which may come later than this.
        self.points, self.known = None, None
        self.backups, self.segments = [], set()
        self.is_read = False
        self.report = None
        # Held while archiving is paused or goes on, and while it is said what is archived.
        self.gate = threading.RLock()
        # Its record; none while every segment is archived.
        self.pause = None
        # When resuming was tried, and why it came to nothing; when room was made; whether the disk has WAL to give back.
        self.resumed_at, self.obstacle, self.freed_at, self.holds_wal = 0, "", 0, False
        self.retention_days = 0
        self.torn_at = None

    def run(self):
        while True:
            section = (machine.current_document() or {}).get("postgresql", {})
            try:
                if "archive" not in section:
                    self.since = self.opened = None
                elif accepts():
                    self.remember()
                    self.look(section["archive"])
                    self.trouble = ""
            except (machine.Refused, OSError, ValueError, KeyError, IndexError) as error:
                self.trouble = str(error)[:DETAIL_CHARACTERS]
                self.conclude(time.time())
            time.sleep(min(KEEP_SECONDS, POINT_SECONDS))

    def remember(self):
        """What was known of the archive before this began."""
        if self.points is None:
            self.known = machine.read_json(ARCHIVED)
            self.points = read_points()
        self.recall()

    def recall(self):
        """A pause from before this began."""
        with self.gate:
            if self.pause is None:
                self.pause = machine.read_json(PAUSE)
            if self.pause is None and self.is_paused():
                self.record_pause(time.time())

    def look(self, archive):
        now = time.time()
        self.retention_days = archive["retentionDays"]
        if self.is_paused():
            return self.see_to_pause(now)
        self.see_to_room(now)
        self.open(archive["repository"], now)
        if self.since is None:
            [self.since] = sql("select pg_walfile_name(pg_current_wal_insert_lsn())")
            self.pending, self.looked_at = [], 0
        if self.backup is not None and self.backup.poll() is not None:
            self.end_backup()
        elif self.looked_at == 0 or now - self.looked_at > INFO_SECONDS:
            self.read_archive()
        if self.backup is None:
            self.see_to_backups(archive, now)
        if now - self.pointed_at >= POINT_SECONDS:
            self.make_point(now)
        self.confirm_points()
        self.conclude(now)

    def open(self, repository, now):
        """Whenever it is another one, and again while nothing gets into it: its store may have been made anew."""
        is_failing = now - self.opened_at >= min(RETRY_SECONDS, POINT_SECONDS) and self.push_failure(now) != ""
        if self.backup is not None or (self.opened == repository and not is_failing):
            return
        self.opened_at = now
        pgbackrest("archive", "stanza-create", seconds=120)
        try:
            self.put_reserve()
        except machine.Refused:
            # It is for later: the archive takes segments without it.
            pass
        self.opened, self.is_open = repository, True
        self.since, self.tried_at = None, 0

    def see_to_backups(self, archive, now):
        """One that failed is told of for as long as one is due."""
        if not self.is_due(archive, now):
            self.failure = ""
        elif now - self.tried_at >= RETRY_SECONDS:
            self.begin_backup(now)

    def is_due(self, archive, now):
        due_at = slot_before(now, archive["fullBackupAt"])
        if self.pause is not None:
            # What was skipped is in none that began before.
            due_at = max(due_at, self.pause.get("resumedAt", 0))
        return not self.backups or self.backups[-1]["start"] < due_at or self.is_torn()

    def is_torn(self):
        """Whether what is archived now follows no backup, by two lists of the archive: it grows while it is listed."""
        if not self.contents_of_archive()["isTorn"]:
            self.torn_at = None
        elif self.torn_at is None:
            self.torn_at, self.looked_at = time.time(), 0
        return self.torn_at is not None and self.looked_at > self.torn_at

    def begin_backup(self, now):
        self.tried_at = now
        self.said = tempfile.TemporaryFile("w+")
        command = pgbackrest_command("archive", "--type=full", "backup")
        self.backup = subprocess.Popen(command, stdout=self.said, stderr=self.said, cwd="/", **as_user())

    def end_backup(self):
        code, self.backup = self.backup.returncode, None
        self.said.seek(0)
        said = " ".join(self.said.read().split())[:DETAIL_CHARACTERS]
        self.said.close()
        self.failure = "" if code == 0 else f"The last backup failed: {said}"
        if code != 0 and self.pause is not None:
            # Segments without a backup before them are of no use, and take room.
            self.obstacle = self.failure
            self.skip(time.time())
        self.read_archive()
        # What can be restored to begins with a moment after the backup.
        self.pointed_at = 0

    def read_archive(self):
        known = json.loads(pgbackrest("archive", "info", "--output=json", seconds=120))[0]
        # A store that does not answer looks empty otherwise.
        if known["status"]["code"] == INFO_FAILED:
            raise machine.Refused(known["repo"][0]["status"]["message"])
        backups = [
            {
                "label": backup["label"],
                "start": backup["timestamp"]["start"],
                "stop": backup["timestamp"]["stop"],
                "first": backup["archive"]["start"],
                "last": backup["archive"]["stop"],
                "bytes": backup["info"]["repository"]["delta"],
                "isBroken": backup.get("error") is True,
            }
            for backup in known["backup"]
        ]
        segments = set()
        for archive in known["archive"]:
            path = f"archive/{STANZA}/{archive['id']}"
            segments |= set(SEGMENT.findall(pgbackrest("archive", "repo-ls", "--recurse", path, seconds=300)))
        self.backups, self.segments, self.is_read = backups, segments, True
        self.looked_at = time.time()
        oldest = backups[0]["stop"] if backups else 0
        self.keep_points([point for point in self.points if point[0] >= oldest])

    def make_point(self, now):
        answers = sql(
            """
            select extract(epoch from clock_timestamp());
            select pg_current_xact_id();
            select pg_walfile_name(pg_current_wal_insert_lsn());
            select pg_switch_wal();
            """
        )
        # A moment is reached by a commit after it.
        self.pending.append((int(float(answers[0]) * 1000) / 1000 - 0.001, answers[2]))
        self.pointed_at = now

    def confirm_points(self):
        with self.gate:
            # The server takes what is skipped for archived.
            if not self.is_paused():
                self.confirm_archived()

    def confirm_archived(self):
        # Nothing at first, and after a crash until the next one is archived.
        last = "".join(sql("select left(last_archived_wal, 24) from pg_stat_archiver"))
        confirmed = [point for point in self.pending if point[1] <= last]
        if not confirmed:
            return
        self.pending = [point for point in self.pending if point[1] > last]
        known = max(self.segments, default="")
        if known < self.since:
            self.looked_at = 0
        else:
            # Everything between is archived: segments are archived in their order.
            for index in range(index_of(known) + 1, index_of(last) + 1):
                log, part = divmod(index, SEGMENTS_PER_LOG)
                self.segments.add(f"{last[:8]}{log:08X}{part:08X}")
        self.points += confirmed
        with open(POINTS, "a") as file:
            file.writelines(f"{moment:.3f} {segment}\n" for moment, segment in confirmed)
            file.flush()
            os.fsync(file.fileno())

    def keep_points(self, points):
        if len(points) != len(self.points):
            machine.write(f"{POINTS}.new", "".join(f"{moment:.3f} {segment}\n" for moment, segment in points))
            os.rename(f"{POINTS}.new", POINTS)
        self.points = points

    def conclude(self, now):
        """What was said last holds until the archive has been read: it is still there while the store is away."""
        failure = self.push_failure(now) or self.trouble or self.failure
        if not self.is_read and self.known is not None:
            self.report = {**self.known, "failure": failure}
            return
        self.report = {"isOpen": self.is_open, "failure": failure, "observedAt": iso(now), **self.contents()}
        self.end_pause()
        changed = [key for key in ("latestAt", "backups") if self.report[key] != (self.known or {}).get(key)]
        if self.is_read and changed:
            self.known = self.report
            write_json(ARCHIVED, self.known)

    def report_at(self, now):
        """Its report, with what is wrong by now: a store that takes requests and is silent holds it up for minutes."""
        report, pause = self.report, self.pause
        if report is None:
            return report
        if pause is not None:
            shown = {key: pause[key] for key in ("since", "from", "reason")}
            state = "paused" if self.is_paused() else "resuming"
            failure = pause_text(pause, report["failure"] or self.obstacle)
            report = {**report, "pause": {"state": state, **shown}, "failure": failure}
        return report if report["failure"] != "" else {**report, "failure": self.push_failure(now)}

    def contents_of_archive(self):
        whole = [backup for backup in self.backups if not backup["isBroken"]]
        return window(whole, self.segments, self.points)

    def contents(self):
        span = self.contents_of_archive()
        return {
            "earliestAt": iso(span["earliest"]),
            "latestAt": iso(span["latest"]),
            "gaps": [{"from": iso(gap["from"]), "to": iso(gap["to"])} for gap in span["gaps"]],
            "shortenedAt": self.shortened_at(),
            "backups": [
                {
                    "label": backup["label"],
                    "startedAt": iso(backup["start"]),
                    "completedAt": iso(backup["stop"]),
                    "bytes": backup["bytes"],
                    "isRestorable": backup["label"] in span["restorable"],
                }
                for backup in self.backups[-BACKUPS_MAXIMUM:]
            ],
        }

    def shortened_at(self):
        """When a backup was removed before its time, for as long as it would be there."""
        at = (machine.read_json(SHORTENED) or {}).get("at")
        return at if at is not None and at > iso(time.time() - self.retention_days * DAY_SECONDS) else None

    def push_failure(self, now):
        """Why the last attempt to archive a segment failed; empty when it did not."""
        try:
            [line] = sql(
                """select coalesce(to_char(last_failed_time at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), '')
                   from pg_stat_archiver
                   where last_failed_time > coalesce(last_archived_time, '-infinity')
                   union all select '' limit 1"""
            ) or [""]
        except (machine.Refused, ValueError):
            return ""
        if line != "":
            return f"What was written cannot be archived, last tried at {line}: {last_line(PUSHED)}"[:DETAIL_CHARACTERS]
        if self.pending and now - self.pending[0][0] > LATE_SECONDS:
            return f"What was written has not been archived since {iso(self.pending[0][0])}."
        return ""

    # --- a full archive, and a disk that fills up meanwhile ---

    def watch(self):
        """Pauses archiving before what waits for it fills the disk. A thread of its own, which asks no store."""
        while True:
            try:
                section = (machine.current_document() or {}).get("postgresql", {})
                if "archive" in section and os.path.exists(MAIN):
                    self.see_to_disk(time.time())
            except (machine.Refused, OSError, ValueError) as error:
                self.trouble = str(error)[:DETAIL_CHARACTERS]
            time.sleep(WATCH_SECONDS)

    def see_to_disk(self, now):
        self.recall()
        waiting = waiting_bytes()
        if self.is_paused():
            if self.holds_wal and waiting == 0:
                sql("checkpoint", seconds=INITIALISE_SECONDS)
                self.holds_wal = False
            return
        disk = os.statvfs(DATA)
        if is_pressed(disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize, waiting):
            self.begin_pause(now)
            end_pushes()

    def is_paused(self):
        return os.path.exists(SKIP)

    def begin_pause(self, now):
        """On record, durably, before the first segment is skipped: the record says from when on nothing can be restored
        to, and stays until something can again."""
        with self.gate:
            if self.pause is None:
                self.record_pause(now)
            self.skip(now)

    def record_pause(self, now):
        reason = "archive_full" if self.is_full() else "storage_nearly_full"
        # Moments may have been confirmed since the last report.
        known = [self.report or machine.read_json(ARCHIVED) or {}, self.contents() if self.is_read else {}]
        reached = max((each["latestAt"] for each in known if each.get("latestAt")), default=None)
        pause = {"since": iso(now), "from": reached, "reason": reason}
        keep_json(PAUSE, pause)
        self.pause = pause

    def skip(self, now):
        with self.gate:
            self.pending, self.resumed_at, self.holds_wal = [], now, True
            keep_json(SKIP, True)

    def see_to_pause(self, now):
        """Tries from time to time whether the archive has room again."""
        if self.backup is not None:
            self.backup.terminate()
            self.backup.wait()
            self.end_backup()
        self.since, self.pending = None, []
        if self.looked_at == 0 or now - self.looked_at > INFO_SECONDS:
            self.read_archive()
        if now - self.resumed_at >= RESUME_SECONDS:
            self.resumed_at = now
            if self.has_room():
                self.resume(now)
        self.conclude(now)

    def resume(self, now):
        """Segments are archived from now on, and a full backup is made: without one they are of no use."""
        with self.gate:
            pause = {**self.pause, "resumedAt": int(now)}
            keep_json(PAUSE, pause)
            self.pause = pause
            self.forget_refusals()
            remove(SKIP)
        self.opened, self.tried_at, self.looked_at = None, 0, 0

    def forget_refusals(self):
        """Of a store that was full: the next attempt says whether it still is."""
        self.failure = ""
        if os.path.exists(PUSHED):
            os.unlink(PUSHED)

    def end_pause(self):
        """It is over once moments after it can be restored to."""
        with self.gate:
            latest = (self.report or {}).get("latestAt")
            if self.pause is not None and not self.is_paused() and self.is_read and (latest or "") > self.pause["since"]:
                remove(PAUSE)
                self.pause, self.obstacle = None, ""

    def has_room(self):
        """Whether the archive takes something. One that is full keeps backups for fewer days."""
        try:
            self.put_reserve()
            return True
        except machine.Refused as refused:
            self.obstacle = str(refused)
            return FULL in self.obstacle and self.make_room()

    def is_full(self):
        return FULL in self.failure or FULL in self.trouble or FULL in last_words_of(PUSHED)

    def see_to_room(self, now):
        if self.backup is None and now - self.freed_at >= RETRY_SECONDS and self.is_full():
            self.freed_at = now
            if self.make_room():
                self.forget_refusals()

    def make_room(self):
        """Removes what is over, else the oldest backup with its segments, on record; never the newest that can be
        restored. Answers whether anything went."""
        self.read_archive()
        before = [backup["label"] for backup in self.backups]
        restorable = self.contents_of_archive()["restorable"]
        if len(before) > 1 and self.backups[1]["stop"] < time.time() - self.retention_days * DAY_SECONDS:
            self.expire()
        elif restorable and before.index(restorable[-1]) > 0:
            keep_json(SHORTENED, {"at": iso(time.time())})
            self.expire("--repo1-retention-full-type=count", f"--repo1-retention-full={len(before) - 1}")
        if [backup["label"] for backup in self.backups] == before:
            return False
        try:
            self.when_noticed(self.put_reserve)
        except machine.Refused as refused:
            if FULL not in str(refused):
                raise
        return True

    def when_noticed(self, act):
        """Tries again for as long as the store may not have noticed that there is room."""
        for _ in range(NOTICE_TRIES - 1):
            try:
                return act()
            except machine.Refused as refused:
                if FULL not in str(refused):
                    raise
            time.sleep(NOTICE_SECONDS)
        return act()

    def expire(self, *retention):
        try:
            pgbackrest("archive", *retention, "expire", seconds=300)
        except machine.Refused as refused:
            if FULL not in str(refused):
                raise
            # The list of what is left is written before the rest is removed.
            pgbackrest("archive", "repo-rm", RESERVE, seconds=120)
            self.when_noticed(lambda: pgbackrest("archive", *retention, "expire", seconds=300))
        self.read_archive()

    def put_reserve(self):
        command = ["pgbackrest", f"--config={machine.CURRENT}/archive.conf", "repo-put", RESERVE]
        call(*command, seconds=120, input_text=secrets.token_hex(RESERVE_BYTES // 2))

    def stop(self):
        if self.backup is not None and self.backup.poll() is None:
            self.backup.terminate()


WHY_PAUSED = {"archive_full": "the archive is full", "storage_nearly_full": "the storage was filling up"}


def pause_text(pause, why):
    """For people."""
    text = f"Archiving is paused since {pause['since']}: {WHY_PAUSED[pause['reason']]}. "
    text += f"Nothing can be restored to after {pause['from']}." if pause["from"] else "Nothing can be restored to."
    return f"{text} {why}".strip()[:DETAIL_CHARACTERS]


def last_words_of(path):
    try:
        with open(path, errors="replace") as file:
            return file.read()[-4096:]
    except OSError:
        return ""


def last_line(path):
    lines = [line.strip() for line in last_words_of(path).split("\n")]
    # What pgBackRest advises after an error is for whoever set it up.
    return next((line for line in reversed(lines) if line != "" and not line.startswith("HINT:")), "")


def read_points():
    try:
        with open(POINTS) as file:
            lines = [line.split() for line in file.read().split("\n")]
    except OSError:
        return []
    # The last line may be half written.
    return [(float(words[0]), words[1]) for words in lines if len(words) == 2 and len(words[1]) == 24]


# --- the keeper -------------------------------------------------------------------------------------------------------

def keeper():
    """Looks after the server for as long as it runs, and writes down what it sees."""
    archivist = Archivist()

    def end(*_):
        archivist.stop()
        os._exit(0)

    signal.signal(signal.SIGTERM, end)
    machine.wait_until(lambda: os.path.isdir(SOCKETS), DISK_SECONDS)
    threading.Thread(target=archivist.run, daemon=True).start()
    threading.Thread(target=archivist.watch, daemon=True).start()
    while True:
        section = (machine.current_document() or {}).get("postgresql")
        if section is not None:
            write_json(KEPT, {**look(section), "at": time.time(), "archive": archivist.report_at(time.time())})
        time.sleep(KEEP_SECONDS)


def look(section):
    try:
        ensure_owner(section)
        [line] = sql(
            "select count(*) filter (where backend_type = 'client backend') - 1, "
            f"pg_database_size({quoted(section['database'])}), {signs_in(section)} from pg_stat_activity"
        )
        connections, size, is_in = line.split("|")
        owner = {"passwordGeneration": section["passwordGeneration"], "signsIn": is_in == "t"}
        return {"detail": "", "connections": int(connections), "sizeBytes": int(size), "owner": owner}
    except (machine.Refused, OSError, ValueError) as error:
        return {"detail": str(error)[:DETAIL_CHARACTERS]}


# --- the answer -------------------------------------------------------------------------------------------------------

def report(section):
    """What is said of it, and what is wrong, for people; empty when nothing is."""
    state = machine.read_json(STATE) or {"state": "preparing", "detail": ""}
    kept = machine.read_json(KEPT) or {"at": 0, "detail": "", "archive": None}
    owner = machine.read_json(OWNER) or {"passwordGeneration": 0}
    said = {"state": state["state"], "passwordGeneration": owner["passwordGeneration"]}
    if kept.get("archive") is not None and "archive" in section:
        said["archive"] = kept["archive"]
    if state["state"] != "running":
        return said, state["detail"] or "the disk with the data is being prepared"
    if time.time() - kept["at"] > SILENT_SECONDS:
        return said, "nothing is known of PostgreSQL"
    if kept["detail"] != "":
        return said, f"PostgreSQL does not answer: {kept['detail']}"
    said |= {"connections": kept["connections"], "sizeBytes": kept["sizeBytes"]}
    # Of another password nothing is known.
    if kept.get("owner", {}).get("passwordGeneration") == owner["passwordGeneration"]:
        said["ownerSignsIn"] = kept["owner"]["signsIn"]
    return said, "" if owner == wanted_owner(section) else "the owner has no password yet"
