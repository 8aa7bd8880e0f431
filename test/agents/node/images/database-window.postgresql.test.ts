/** From when to when an archive can be restored, by what is in it; and what its program is told. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const run = promisify(execFile)
const FOLDER = join(import.meta.dirname, '../../../../agents/node/images/managed')
/** The script finds its neighbours in the program that it is part of. */
const PROGRAM = `
import json, sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
RUN = ROOT = LIB = CURRENT = "/nowhere"
import database

def points_confirmed(pending, answers):
    """What is left of them when the server answers so."""
    database.sql = lambda text: answers
    archivist = database.Archivist()
    archivist.pending = pending
    archivist.confirm_points()
    return archivist.pending

database.points_confirmed = points_confirmed
print(json.dumps(getattr(database, sys.argv[2])(*json.loads(sys.argv[3]))))`

async function call(name: string, ...input: readonly unknown[]): Promise<unknown> {
  const { stdout } = await run('python3', ['-c', PROGRAM, FOLDER, name, JSON.stringify(input)])
  return JSON.parse(stdout)
}

const hex = (number: number): string => number.toString(16).toUpperCase().padStart(8, '0')
/** 256 in each log. */
const segment = (number: number): string => `00000001${hex(Math.floor(number / 256))}${hex(number % 256)}`
const backup = (label: string, stop: number, first: number, last = first) => ({
  ...{ label, stop },
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
    { earliest: 101, latest: 700, gaps: [{ from: 250, to: 601 }], restorable: ['a', 'b'] },
  ],
  [
    'a segment that is missing at the end',
    [[backup('a', 100, 1)], [1, 2, 4], [point(150, 2), point(450, 4)]],
    { earliest: 101, latest: 150, gaps: [] },
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

test('pgBackRest is told whole numbers, newer versions refuse others', async () => {
  const repository = { bucket: 'b', endpoint: 'e', accessKeyId: 'k', secretAccessKey: 's', region: 'r', cipherKey: 'c' }
  const section = { archive: { repository: { ...repository, port: 443 }, retentionDays: 7 } }
  const text = await call('pgbackrest_conf', section, 'archive')
  expect(text).toMatch(/^io-timeout=15$/m)
  expect(text).not.toMatch(/=\d+\.\d*$/m)
})
