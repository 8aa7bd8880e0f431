/** No request of a tenant touches anything outside of the tenant. */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { findEngine } from '../../../embedded/object-storage/program.ts'
import { operationEntries, readOperation } from '../../../kit/s3/operation.ts'
import { S3Refusal } from '../../../kit/s3/refusal.ts'
import { environment, isRoot, nodeBinary } from '../../../kit/sys/process.ts'
import { ASKED, headersOf } from './climbing/attacks.ts'

const UPLOAD = '0f0f0f0f-1111-2222-3333-444444444444'
const run = promisify(execFile)

/** Everything but the folder becomes read-only, in a separate namespace: an engine that climbs removes all that its
 *  user may. Arguments: the folder, then the command. */
const ALONE = `set -e
folder=$1
shift
mount --bind "$folder" "$folder"
cut -d' ' -f5 /proc/self/mountinfo | sort -u | while read -r point; do
  case "$point" in "$folder"|/proc|/proc/*) ;; *) mount -o remount,bind,ro "$point" ;; esac
done
cd /
exec "$@"`

interface Result {
  readonly count: number
  /** Statuses, and how many of each. */
  readonly answers: Readonly<Record<string, number>>
  readonly [outcome: string]: unknown
}

/** `share`: one in so many of the attacks. */
async function attack(way: 'door' | 'past', where: 'cells' | 'open', share: number): Promise<Result> {
  const folder = await mkdtemp(join(tmpdir(), 'climbing-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  await mkdir(join(folder, 'tmp'), { mode: 0o755 })
  const program = (await findEngine()) ?? 'versitygw'
  const main = join(import.meta.dirname, 'climbing/main.ts')
  const { stdout } = await run(
    'unshare',
    [
      '--mount',
      '--propagation',
      'private',
      '--',
      'sh',
      '-c',
      ALONE,
      'sh',
      folder,
      nodeBinary(),
      main,
      folder,
      program,
      String(share),
      way,
      where,
    ],
    { maxBuffer: 64 * 1024 * 1024, env: { ...environment(), TMPDIR: join(folder, 'tmp') } },
  )
  return JSON.parse(stdout.trim().split('\n').at(-1) ?? '')
}

test.runIf(isRoot())(
  'nothing outside of a tenant changes or is read, for any request, and every request is answered',
  { timeout: 240_000 },
  async () => {
    const result = await attack('door', 'cells', 23)
    expect(result.count).toBeGreaterThan(5_000)
    expect(result).toMatchObject({ leaks: [], hangs: [], errors: [], changed: [], isServed: true })
  },
)

test.runIf(isRoot())('and nothing when only what is before its engine keeps it', { timeout: 240_000 }, async () => {
  const result = await attack('door', 'open', 29)
  expect(result.count).toBeGreaterThan(4_000)
  expect(result).toMatchObject({ leaks: [], hangs: [], errors: [], changed: [], isServed: true })
})

test.runIf(isRoot())('and nothing when its engine hears every word', { timeout: 240_000 }, async () => {
  const result = await attack('past', 'cells', 31)
  // It has been asked, and has done to its own tenant what it would.
  expect((result.answers['200'] ?? 0) + (result.answers['204'] ?? 0)).toBeGreaterThan(100)
  expect(result).toMatchObject({ leaks: [], changed: [], isServed: true })
})

test.runIf(isRoot())('without either wall the same attacks reach others', { timeout: 240_000 }, async () => {
  const { changed } = await attack('past', 'open', 31)
  expect(changed).toContain('/outside/precious')
  expect(changed).toContainEqual(expect.stringMatching(/^\/store\/tenants\/1\/data\/.+\/secret$/))
})

test('the attacks refuse to run where anything else can be written', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'climbing-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const main = join(import.meta.dirname, 'climbing/main.ts')
  await expect(run(nodeBinary(), [main, folder, '/bin/false'])).rejects.toThrow('can be written here')
})

test('every operation of the table is attacked', () => {
  const plain: Readonly<Record<string, string>> = { B: 'one-b', K: 'k', U: UPLOAD, u: UPLOAD, V: 'null' }
  const fill = (text: string): string => text.replaceAll(/\b[BKUVu]\b/g, (name) => plain[name] ?? '')
  const attacked = ASKED.flatMap(([method, target, headers = '']) => {
    const rawHeaders = Object.entries(headersOf(headers, fill)).flat()
    // What has an exact form keeps it.
    const own = rawHeaders
      .map((value) => (value === 'k' ? '' : value))
      .filter((_value, index) => rawHeaders[index] !== '')
    const read = readOperation({
      method,
      target: fill(target).replace(/(=true|=9)?&continuation-token=k/, '$1'),
      rawHeaders: own,
    })
    return read instanceof S3Refusal ? [] : [read.name]
  })
  const missing = operationEntries().flatMap(({ name }) => (attacked.includes(name) ? [] : [name]))
  expect(missing).toEqual([])
})
