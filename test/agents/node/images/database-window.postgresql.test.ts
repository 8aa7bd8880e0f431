/** From when to when an archive can be restored, by what is in it; and what its program gets. */
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { PYTHON } from '../../../python.ts'

const run = promisify(execFile)
const FOLDER = join(import.meta.dirname, '../../../../agents/node/images/managed')
/** The script finds its neighbours in the program that it is part of. */
const PROGRAM = `
import json, sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
RUN = ROOT = LIB = CURRENT = "/nowhere"

class Refused(Exception):
    pass

import database

def points_confirmed(pending, answers):
    """What is left of them when the server answers so."""
    database.sql = lambda text: answers
    archivist = database.Archivist()
    archivist.pending = pending
    archivist.confirm_points()
    return archivist.pending

def refused():
    raise Refused("there is no room for it")

def openings(looks):
    """At which of them the archive is opened: each has a repository, a time and whether pushes fail."""
    opened = []
    archivist = database.Archivist()
    for number, (repository, at, is_failing) in enumerate(looks):
        database.pgbackrest = lambda *_, **_options: opened.append(number)
        archivist.push_failure = lambda now: "it fails" if is_failing else ""
        archivist.put_reserve = refused
        archivist.open(repository, at)
    return opened

def said(failure, pending_since, now):
    """What is said while nobody hears of the store."""
    database.sql = lambda text: []
    archivist = database.Archivist()
    archivist.report, archivist.pending = {"failure": failure}, [(pending_since, "")]
    return archivist.report_at(now)["failure"]

def archive_read(info):
    """What is known after the archive was read, or why it was not; the program says so of it."""
    archivist = database.Archivist()
    archivist.points, archivist.backups = [], ["known"]
    database.pgbackrest = lambda *_, **_options: json.dumps([info])
    try:
        archivist.read_archive()
    except database.machine.Refused as refused:
        return [str(refused), archivist.backups]
    return ["", archivist.backups]

def failure_after(backups, now):
    """What is still said of a backup that failed ten seconds ago."""
    archivist = database.Archivist()
    archivist.is_torn = lambda: False
    archivist.backups, archivist.failure, archivist.tried_at = backups, "it failed", now - 10
    archivist.see_to_backups({"fullBackupAt": {"hour": 3, "minute": 30}}, now)
    return archivist.failure

database.archive_read, database.failure_after = archive_read, failure_after
database.points_confirmed, database.openings, database.said = points_confirmed, openings, said
print(json.dumps(getattr(database, sys.argv[2])(*json.loads(sys.argv[3]))))`

async function call(name: string, ...input: readonly unknown[]): Promise<unknown> {
  const { stdout } = await run(PYTHON, ['-c', PROGRAM, FOLDER, name, JSON.stringify(input)])
  return JSON.parse(stdout)
}

const hex = (number: number): string => number.toString(16).toUpperCase().padStart(8, '0')
/** 256 in each log. */
const segment = (number: number): string => `00000001${hex(Math.floor(number / 256))}${hex(number % 256)}`
const backup = (label: string, stop: number, first: number, last = first) => ({
  label,
  stop,
  first: segment(first),
  last: segment(last),
})
const point = (moment: number, number: number) => [moment, segment(number)]
const windowOf = (
  backups: readonly object[],
  segments: readonly number[],
  points: readonly (readonly unknown[])[],
): Promise<unknown> => call('window', backups, segments.map(segment), points)

test.each<[string, Parameters<typeof windowOf>, object]>([
  ['nothing', [[], [], []], { earliest: null, latest: null, gaps: [], restorable: [] }],
  [
    'a backup and no moment after it',
    [[backup('a', 100, 1, 2)], [1, 2], [point(90, 1)]],
    { earliest: null, latest: null, restorable: ['a'] },
  ],
  [
    'a backup and what was written after it',
    [[backup('a', 100, 1)], [1, 2, 3], [point(150, 2), point(250, 3)]],
    { earliest: 101, latest: 250, gaps: [] },
  ],
  [
    'a moment whose segment is not there yet',
    [[backup('a', 100, 1)], [1, 2], [point(150, 2), point(250, 3)]],
    { earliest: 101, latest: 150 },
  ],
  [
    'two backups without a break between them',
    [
      [backup('a', 100, 1), backup('b', 300, 3)],
      [1, 2, 3, 4],
      [point(150, 2), point(290, 3), point(400, 4)],
    ],
    { earliest: 101, latest: 400, gaps: [], restorable: ['a', 'b'] },
  ],
  [
    'a segment that is missing between them',
    [
      [backup('a', 100, 1), backup('b', 600, 6)],
      [1, 2, 3, 5, 6, 7],
      [point(150, 2), point(250, 3), point(550, 5), point(700, 7)],
    ],
    { earliest: 101, latest: 700, gaps: [{ from: 250, to: 601 }], restorable: ['a', 'b'], isTorn: false },
  ],
  [
    'a segment that is missing at the end',
    [[backup('a', 100, 1)], [1, 2, 4], [point(150, 2), point(450, 4)]],
    { earliest: 101, latest: 150, gaps: [], isTorn: true },
  ],
  [
    'a backup that lacks a segment of its own',
    [
      [backup('a', 100, 1, 3), backup('b', 500, 5)],
      [1, 3, 4, 5, 6],
      [point(200, 4), point(600, 6)],
    ],
    { earliest: 501, latest: 600, gaps: [], restorable: ['b'] },
  ],
  [
    'segments over the end of a log',
    [[backup('a', 100, 255)], [255, 256, 257], [point(300, 257)]],
    { earliest: 101, latest: 300 },
  ],
])('with %s', async (_name, input, expected) => {
  expect(await windowOf(...input)).toMatchObject(expected)
})

test('full backups are due once a day, at their time', async () => {
  const at = (text: string): number => Date.parse(text) / 1_000
  const slot = (now: string) => call('slot_before', at(now), { hour: 3, minute: 30 })
  expect(await slot('2026-01-02T03:30:00Z')).toBe(at('2026-01-02T03:30:00Z'))
  expect(await slot('2026-01-02T03:29:59Z')).toBe(at('2026-01-01T03:30:00Z'))
  expect(await slot('2026-01-02T23:00:00Z')).toBe(at('2026-01-02T03:30:00Z'))
})

test('moments are never later than they were', async () => {
  expect(await call('iso', 1_767_225_600.9999)).toBe('2026-01-01T00:00:00.999Z')
  expect(await call('moment_of', '2026-01-01T00:00:00.123456Z')).toBe('2026-01-01 00:00:00.123456+00')
})

test('a server that has archived nothing yet, as after a crash, confirms no moment', async () => {
  const pending = [point(150, 2)]
  expect(await call('points_confirmed', pending, [])).toEqual(pending)
})

test('pgBackRest gets whole numbers, newer versions refuse others', async () => {
  const repository = { bucket: 'b', endpoint: 'e', accessKeyId: 'k', secretAccessKey: 's', region: 'r', cipherKey: 'c' }
  const section = { archive: { repository: { ...repository, port: 443 }, retentionDays: 7 } }
  const text = await call('pgbackrest_conf', section, 'archive')
  expect(text).toMatch(/^io-timeout=15$/m)
  expect(text).not.toMatch(/=\d+\.\d*$/m)
})

test('an archive is opened when it is another one, and again while nothing gets into it', async () => {
  const looks = [
    ['first', 1_000, false],
    ['first', 1_005, false],
    ['second', 1_010, false],
    ['second', 1_015, true],
    ['second', 1_075, true],
    ['second', 1_080, true],
    ['second', 1_300, false],
  ]
  expect(await call('openings', looks)).toEqual([0, 2, 4])
})

test('a store that delays requests is reported as having archived nothing since', async () => {
  expect(await call('said', '', 1_000, 1_100)).toBe('')
  expect(await call('said', '', 1_000, 1_200)).toBe(
    'What was written has not been archived since 1970-01-01T00:16:40.000Z.',
  )
  expect(await call('said', 'it is away', 1_000, 1_200)).toBe('it is away')
})

test('a store that does not answer is not taken for an empty archive', async () => {
  const info = (code: number, message: string) => ({
    archive: [],
    backup: [],
    status: { code, message: 'other' },
    repo: [{ status: { code, message } }],
  })
  expect(await call('archive_read', info(99, '[HostConnectError] unable to connect'))).toEqual([
    '[HostConnectError] unable to connect',
    ['known'],
  ])
  expect(await call('archive_read', info(2, 'no valid backups'))).toEqual(['', []])
})

test('a failed backup is reported as long as one is due', async () => {
  const now = Date.parse('2026-01-02T12:00:00Z') / 1_000
  expect(await call('failure_after', [], now)).toBe('it failed')
  expect(await call('failure_after', [{ start: now - 86_400 }], now)).toBe('it failed')
  expect(await call('failure_after', [{ start: now - 3_600 }], now)).toBe('')
})

test('the failure of a push is its error, and not the advice of its program', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-push-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const path = join(folder, 'archive-push.log')
  await writeFile(path, 'WARN: slow\nERROR: [103]: no repository answers\n       HINT: use --no-archive-check.\n\n')
  expect(await call('last_line', path)).toBe('ERROR: [103]: no repository answers')
  await writeFile(path, '')
  expect([await call('last_line', path), await call('last_line', join(folder, 'absent'))]).toEqual(['', ''])
})
