/** When archiving is paused, what is on record of it at each moment that its program may be killed at, and what a full
 *  archive removes. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { runProgram } from '../../../../agents/node/run-program.ts'
import { PYTHON } from '../../../python.ts'

const SCRIPTS = join(import.meta.dirname, '../../../../agents/node/images/managed')
/** The script as a whole, without what it does when it is called. */
const PROGRAM = `
import os, sys
os.environ |= {"MACHINE_ROOT": sys.argv[2], "MACHINE_DATA": sys.argv[2]}
exec(open(sys.argv[1] + "/machine").read().split("\\nif __name__ ==")[0])
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import database

SINCE = 1_767_225_600
NAMES = {database.PAUSE: "record", database.SKIP: "skip"}

class Killed(BaseException):
    pass

def opened(latest="2025-12-31T23:59:00.000Z"):
    archivist = database.Archivist()
    archivist.report = {"latestAt": latest, "failure": ""}
    archivist.is_read = True
    archivist.recall()
    return archivist

def paused(archivist):
    archivist.begin_pause(SINCE)

def resumed(archivist):
    archivist.begin_pause(SINCE)
    yield
    archivist.resume(SINCE + 60)

def ended(archivist):
    archivist.begin_pause(SINCE)
    archivist.resume(SINCE + 60)
    archivist.report = {"latestAt": database.iso(SINCE + 120), "failure": ""}
    yield
    archivist.end_pause()

def on_record(latest, is_skipped):
    """Whether the pause still is, when that is the last moment to restore to."""
    archivist = opened()
    archivist.begin_pause(SINCE)
    if not is_skipped:
        archivist.resume(SINCE + 60)
    archivist.report = {"latestAt": latest, "failure": ""}
    archivist.end_pause()
    return read_json(database.PAUSE) is not None

def is_skipped():
    """As the command of the archive judges."""
    return os.system(f"test -s {database.PAUSE} && test -e {database.SKIP}") == 0

def killed_at(act, step):
    """What there is when it was killed before its so-manieth effect on the disk, and what the next one makes of it."""
    for path in (database.PAUSE, database.SKIP):
        if os.path.exists(path):
            os.unlink(path)
    effects, is_counting = [], [True]
    def effect(name, run):
        def counted(*operands):
            if is_counting[0]:
                if len(effects) == step:
                    raise Killed()
                effects.append(" ".join([name, *[NAMES.get(each, "") for each in operands if each in NAMES]]))
            return run(*operands)
        return counted
    real = (os.rename, os.unlink, os.fsync)
    os.rename, os.unlink, os.fsync = effect("rename", real[0]), effect("unlink", real[1]), effect("sync", real[2])
    archivist = opened()
    try:
        acting = act(archivist)
        if acting is not None:
            is_counting[0] = False
            next(acting)
            is_counting[0] = True
            next(acting, None)
        is_done = True
    except Killed:
        is_done = False
    os.rename, os.unlink, os.fsync = real
    found = {"isDone": is_done, "effects": effects, "isSkipped": is_skipped(), "record": read_json(database.PAUSE)}
    after = opened()
    return {**found, "isPaused": after.is_paused(), "known": after.pause}

def kills(name):
    act = {"pause": paused, "resume": resumed, "end": ended}[name]
    found = []
    while not found or not found[-1]["isDone"]:
        found.append(killed_at(act, len(found)))
    return found

def confirmed(is_paused):
    archivist = opened()
    archivist.points, archivist.pending, archivist.since = [], [(100, "0" * 24)], "0" * 24
    archivist.segments = {"0" * 24}
    if is_paused:
        database.keep_json(database.SKIP, True)
    database.sql = lambda text: ["0" * 24]
    archivist.confirm_points()
    return archivist.points

def is_due(pause, start):
    archivist = opened()
    archivist.pause, archivist.backups, archivist.points = pause, [backup(start)], []
    return archivist.is_due({"fullBackupAt": {"hour": 0, "minute": 0}}, SINCE + 3_600)

def backup(start):
    return {"label": "a", "start": start, "stop": start, "first": "%024X" % 1, "last": "%024X" % 1, "isBroken": False}

def due_when_torn(looks):
    """Whether a backup is due after each list of the archive, which has these segments."""
    archivist = opened()
    archivist.points, archivist.backups = [], [backup(SINCE + 60)]
    due = []
    for numbers in looks:
        archivist.segments = {"%024X" % number for number in numbers}
        is_due = archivist.is_due({"fullBackupAt": {"hour": 0, "minute": 0}}, SINCE + 3_600)
        due.append([is_due, archivist.looked_at == 0])
        archivist.looked_at = database.time.time() + 1
    return due

def room_made(labels, restorable, is_over, has_reserve):
    """What is left of those backups, what was asked of pgBackRest, and whether it is on record."""
    labels, asked = list(labels), []
    def info():
        return [{"label": label, "timestamp": {"start": n, "stop": n}, "info": {"repository": {"delta": 1}},
                 "archive": {"start": "%024X" % n, "stop": "%024X" % n}, "error": label not in restorable}
                for n, label in enumerate(labels, 1)]
    refusals = [3 if has_reserve else 0]
    database.time.sleep = lambda seconds: None
    def pgbackrest(purpose, *options, seconds):
        if "info" in options:
            return json.dumps([{"archive": [{"id": "1"}], "backup": info(), "status": {"code": 0}}])
        if "repo-ls" in options:
            return "".join(f"{'%024X' % n}-{'0' * 40}\\n" for n in range(1, 20))
        asked.append(" ".join(options))
        if "repo-rm" not in options and refusals[0] > 0:
            # It has not noticed yet that the reserve has gone.
            refusals[0] -= 1
            raise Refused("pgbackrest: QuotaExceeded")
        if "repo-rm" in options:
            pass
        elif "--repo1-retention-full-type=count" in options or is_over:
            del labels[0]
        return ""
    database.pgbackrest = pgbackrest
    archivist = opened()
    archivist.points = []
    archivist.retention_days = 1 if is_over else 1_000_000
    archivist.put_reserve = lambda: asked.append("put the reserve")
    answer = archivist.make_room()
    return {"answer": answer, "left": labels, "asked": asked, "isOnRecord": read_json(database.SHORTENED) is not None}

def shown(pause, is_skipped):
    archivist = opened()
    archivist.pause = pause
    if is_skipped:
        database.keep_json(database.SKIP, True)
    return archivist.report_at(SINCE)

def after_backup(pause, code):
    """Whether segments are skipped after a backup that ended so."""
    archivist = opened()
    archivist.pause, archivist.read_archive = pause, lambda: None
    archivist.backup = subprocess.Popen(["sh", "-c", f"exit {code}"])
    archivist.backup.wait()
    archivist.said = database.tempfile.TemporaryFile("w+")
    archivist.end_backup()
    return archivist.is_paused()

def pushes_ended(words):
    """How what runs with those words ends."""
    program = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", *words])
    wait_until(lambda: "time.sleep" in open(f"/proc/{program.pid}/cmdline").read(), 10)
    database.end_pushes()
    try:
        return program.wait(2)
    except subprocess.TimeoutExpired:
        program.kill()
        return "it goes on"

def is_pressed(*operands):
    return database.is_pressed(*operands)

print(json.dumps(globals()[sys.argv[3]](*json.loads(sys.argv[4]))))`

let folder = ''
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-pause-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const call = async (name: string, ...input: readonly unknown[]): Promise<unknown> =>
  JSON.parse(await runProgram(PYTHON, ['-c', PROGRAM, SCRIPTS, folder, name, JSON.stringify(input)]))

interface Kill {
  readonly isDone: boolean
  readonly effects: readonly string[]
  readonly isSkipped: boolean
  readonly record: { readonly since: string; readonly from: string } | null
  readonly isPaused: boolean
  readonly known: object | null
}
const killsIn = (what: 'pause' | 'resume' | 'end') => call('kills', what) as Promise<readonly Kill[]>
const RECORD = { since: '2026-01-01T00:00:00.000Z', from: '2025-12-31T23:59:00.000Z', reason: 'storage_nearly_full' }

test('wherever it is killed while it pauses, nothing is skipped that is not on record', async () => {
  const kills = await killsIn('pause')
  expect(kills.length).toBeGreaterThan(6)
  for (const { isSkipped, record, isPaused, known } of kills) {
    if (isSkipped) expect(record).toEqual(RECORD)
    expect(isPaused).toBe(isSkipped)
    expect(known).toEqual(record)
  }
  expect(kills.at(-1)).toMatchObject({ isSkipped: true, record: RECORD })
  // The folder is durable between the two.
  expect(kills.at(-1)?.effects).toEqual(['sync', 'rename record', 'sync', 'sync', 'rename skip', 'sync'])
})

test('wherever it is killed while it resumes, the gap stays on record until it is over', async () => {
  const resumes = await killsIn('resume')
  expect(resumes.length).toBeGreaterThan(3)
  for (const { record, known } of resumes) {
    expect(record).toMatchObject(RECORD)
    expect(known).toEqual(record)
  }
  expect(resumes[0]?.isSkipped).toBe(true)
  expect(resumes.at(-1)).toMatchObject({ isSkipped: false, isPaused: false, record: { resumedAt: 1_767_225_660 } })
  const ends = await killsIn('end')
  for (const { isSkipped, isPaused } of ends) expect([isSkipped, isPaused]).toEqual([false, false])
  expect(ends.at(-1)).toMatchObject({ record: null, known: null })
})

test('moments are not said to be archived that the server takes for it while segments are skipped', async () => {
  expect(await call('confirmed', false)).toEqual([[100, '0'.repeat(24)]])
  expect(await call('confirmed', true)).toEqual([])
})

test('a gap needs a full backup that started after it', async () => {
  const start = 1_767_225_600 + 1_800
  expect(await call('is_due', null, start)).toBe(false)
  expect(await call('is_due', { resumedAt: start + 1 }, start)).toBe(true)
  expect(await call('is_due', { resumedAt: start }, start)).toBe(false)
})

test('a segment that is missing after the newest backup needs another one, by two lists of the archive', async () => {
  const isDue = [true, false]
  const listAgain = [false, true]
  expect(await call('due_when_torn', [[1], [1, 2], [1, 2, 4], [1, 2, 4], [1, 2, 4, 5]])).toEqual([
    [false, true],
    [false, false],
    listAgain,
    isDue,
    isDue,
  ])
  expect(
    await call('due_when_torn', [
      [1, 2],
      [1, 3],
      [1, 2, 3],
    ]),
  ).toEqual([[false, true], listAgain, [false, false]])
})

test('a pause is over once segments are archived again and a moment after it can be restored', async () => {
  const later = '2026-01-01T00:02:00.000Z'
  expect(await call('on_record', later, true)).toBe(true)
  expect(await call('on_record', RECORD.from, false)).toBe(true)
  expect(await call('on_record', null, false)).toBe(true)
  expect(await call('on_record', later, false)).toBe(false)
})

test('a backup that fails after the pause starts a new one: segments need a backup before them', async () => {
  expect(await call('after_backup', null, 1)).toBe(false)
  expect(await call('after_backup', RECORD, 0)).toBe(false)
  expect(await call('after_backup', RECORD, 1)).toBe(true)
})

test('a push that a silent store holds up is ended, and no other program', async () => {
  const config = (name: string) => `--config=${folder}/var/lib/svccloud/current/${name}.conf`
  expect(await call('pushes_ended', [config('archive'), 'archive-push'])).toBe(-15)
  expect(await call('pushes_ended', [config('archive'), 'backup'])).toBe('it goes on')
  expect(await call('pushes_ended', [config('other'), 'archive-push'])).toBe('it goes on')
})

test.each<[string, readonly [number, number, number], boolean]>([
  ['a fifth is free', [20, 100, 40], false],
  ['less, because of what waits', [19, 100, 40], true],
  ['less, because of the data', [19, 100, 6], false],
  ['a quarter of what the data leaves waits', [3, 100, 1], true],
  ['nothing waits', [1, 100, 0], false],
  ['all is taken', [0, 100, 30], true],
])('a disk is under pressure: %s', async (_name, input, expected) => {
  expect(await call('is_pressed', ...input)).toBe(expected)
})

const COUNT = '--repo1-retention-full-type=count --repo1-retention-full='
test('a full archive removes the oldest backup, on record, and never the last that can be restored', async () => {
  expect(await call('room_made', ['a', 'b', 'c'], ['a', 'b', 'c'], false, false)).toEqual({
    answer: true,
    left: ['b', 'c'],
    asked: [`${COUNT}2 expire`, 'put the reserve'],
    isOnRecord: true,
  })
  expect(await call('room_made', ['a', 'b'], ['a'], false, false)).toMatchObject({ answer: false, left: ['a', 'b'] })
  expect(await call('room_made', ['a'], ['a'], false, false)).toMatchObject({ answer: false, asked: [] })
  expect(await call('room_made', ['a', 'b'], [], false, false)).toMatchObject({ answer: false, asked: [] })
})

test('a full archive first removes what is over, and gives up its reserve to write what is left', async () => {
  expect(await call('room_made', ['a', 'b'], ['a', 'b'], true, true)).toEqual({
    answer: true,
    left: ['b'],
    asked: ['expire', 'repo-rm reserve', 'expire', 'expire', 'expire', 'put the reserve'],
    isOnRecord: false,
  })
})

test('a pause is said with why and from when on, also while the archive is not heard of', async () => {
  expect(await call('shown', { ...RECORD, resumedAt: 1 }, false)).toMatchObject({ pause: { state: 'resuming' } })
  const paused = await call('shown', RECORD, true)
  expect(paused).toMatchObject({
    pause: { state: 'paused', ...RECORD },
    failure:
      'Archiving is paused since 2026-01-01T00:00:00.000Z: the storage was filling up. ' +
      'Nothing can be restored to after 2025-12-31T23:59:00.000Z.',
  })
})
