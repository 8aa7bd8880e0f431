/** The hook that judges messages of commits, with a real git. */
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, expect, test } from 'vitest'

const HOOKS = join(import.meta.dirname, '../../.githooks')
const run = promisify(execFile)
let folder: string

const git = (...args: readonly string[]) =>
  run('git', ['-c', 'user.name=Somebody', '-c', 'user.email=somebody@example.com', ...args], { cwd: folder })
const commit = async (lines: number, message: string) => {
  await writeFile(
    join(folder, 'file'),
    Array.from({ length: lines }, (_, index) => `${message.length} ${index}\n`).join(''),
  )
  await git('add', 'file')
  return git('commit', '--quiet', '--message', message)
}

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'commits-'))
  await git('init', '--quiet')
  await git('config', 'core.hooksPath', HOOKS)
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const LONG = `agents: ${'x'.repeat(65)}`
const WHY = 'agents: resume a mirror\n\nIt was forgotten after a restart.'

test.each([
  ['with a subject of 72 characters', 5, LONG.slice(0, 72)],
  ['of 30 lines without a body', 30, 'agents: resume a mirror'],
  ['of more lines with a body', 200, WHY],
])('a commit %s is made', async (_what, lines, message) => {
  await commit(lines, message)
  expect((await git('log', '--format=%s')).stdout.trim()).toBe(message.split('\n')[0])
})

test.each([
  ['with a subject of 73 characters', 5, LONG, 'the subject has 73 characters'],
  ['of more lines without a body', 31, 'agents: resume a mirror', 'it changes 31 lines'],
  [
    'of more lines with nothing but a trailer',
    31,
    'agents: resume a mirror\n\nSigned-off-by: Somebody <somebody@example.com>',
    'it changes 31 lines',
  ],
])('a commit %s is refused', async (_what, lines, message, why) => {
  await expect(commit(lines, message)).rejects.toThrow(why)
})

test('commits that are there already are judged one by one', async () => {
  await git('config', 'core.hooksPath', '/dev/null')
  await commit(5, 'begin')
  await commit(5, LONG)
  await commit(60, 'agents: resume a mirror')
  await commit(60, WHY)
  const judged = run(join(HOOKS, 'commit-msg'), ['--commits', 'HEAD~3..HEAD'], { cwd: folder })
  await expect(judged).rejects.toMatchObject({
    stderr: expect.stringMatching(/^\w+: it changes 65 lines.*\n\w+: the subject has 73 characters.*\n$/),
  })
  await run(join(HOOKS, 'commit-msg'), ['--commits', 'HEAD~1..HEAD'], { cwd: folder })
})
