/** qemu-nbd as it behaves on a busy host: late, deaf, or not at all. */
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { withServedDisk } from '../../../../agents/node/backup/served-disk.ts'
import { runProgram } from '../../../../agents/node/run-program.ts'
import { systemClock } from '../../../../kit/sys/clock.ts'

const PATH = process.env['PATH']
/** A socket file at which nobody listens, as between bind and listen. */
const BIND_ONLY = `perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0); bind(S, sockaddr_un("s")) or die $!'`
let folder: string
let path: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-served-'))
  await mkdir(join(folder, 'bin'))
  await mkdir(join(folder, 'sockets'))
  path = join(folder, 'disk.qcow2')
  await runProgram('qemu-img', ['create', '-q', '-f', 'qcow2', path, '1G'])
})
afterEach(async () => {
  process.env['PATH'] = PATH
  await rm(folder, { recursive: true })
})

/** The script is run in place of qemu-nbd, with which it may go on. */
async function inPlace(script: string): Promise<void> {
  const program = join(folder, 'bin', 'qemu-nbd')
  await writeFile(program, `#!/bin/sh\nexport PATH='${PATH}'\n${script}\n`)
  await chmod(program, 0o755)
  process.env['PATH'] = `${join(folder, 'bin')}:${PATH}`
}
/** Waits longer than that last as long. */
const atMost = (limit: number) => ({
  ...systemClock,
  after: (milliseconds: number, work: () => void) => systemClock.after(Math.min(milliseconds, limit), work),
})
const sizeOf = (isWritable: boolean, clock = systemClock) =>
  withServedDisk({ folder: join(folder, 'sockets'), path, isWritable, clock }, async ({ sizeBytes }) => sizeBytes)
const leftovers = () => readdir(join(folder, 'sockets'))

it.each([true, false])(
  'waits for a server that has its socket and does not listen yet (writable: %s)',
  async (is) => {
    await inPlace(`${BIND_ONLY}; sleep 0.3; rm s; exec qemu-nbd "$@"`)
    expect(await sizeOf(is)).toBe(2 ** 30)
    expect(await leftovers()).toEqual([])
  },
  20_000,
)

it('ends a server that does not end when it is asked to', async () => {
  await inPlace(`trap '' TERM; qemu-nbd "$@" & echo $! > ../../pid; while :; do sleep 0.1; done`)
  expect(await sizeOf(true, atMost(3_000))).toBe(2 ** 30)
  process.kill(Number(await readFile(join(folder, 'pid'), 'utf8')))
  expect(await leftovers()).toEqual([])
})

it('gives up a server that never answers', async () => {
  await inPlace(`${BIND_ONLY}; while :; do sleep 0.1; done`)
  await expect(sizeOf(false, atMost(1_000))).rejects.toThrow('qemu-nbd does not answer')
  expect(await leftovers()).toEqual([])
})

it('says what the server says when it cannot open the disk', async () => {
  await rm(path)
  await expect(sizeOf(false)).rejects.toThrow('No such file')
})
