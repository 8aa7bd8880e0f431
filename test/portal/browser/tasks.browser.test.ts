/** What somebody new tries, each in the browser without documentation; the page of the documentation says how many
 *  clicks and keys that takes. The commands beside them are accepted by the command. */
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { environment, nodeBinary } from '../../../kit/sys/process.ts'
import { PUBLIC_KEY } from '../../e2e/customer.ts'
import { usePortal } from './kit/browser.ts'
import { doTasks, pageOf, TASKS } from './kit/tasks.ts'

const run = promisify(execFile)
const ROOT = join(import.meta.dirname, '../../..')
const portal = usePortal()

it('twenty tasks take the clicks and keys that the documentation says', { timeout: 480_000 }, async () => {
  const person = await portal.signUp()
  const page = await portal.page({ as: person, allows: [/status of 404 .*\/(storages|snapshots)\//] })
  expect(TASKS).toHaveLength(20)
  expect(await readFile(join(ROOT, 'docs/portal-tasks.md'), 'utf8')).toBe(pageOf(await doTasks(page)))
})

it('the commands beside them are accepted, without those that ask for the password', { timeout: 480_000 }, async () => {
  const { customer } = await portal.signUp()
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-tasks-'))
  try {
    await writeFile(join(folder, 'key.pub'), `${PUBLIC_KEY}\n`)
    const env = {
      PATH: environment()['PATH'],
      HOME: folder,
      SVCCLOUD_URL: portal.url,
      SVCCLOUD_TOKEN: customer.token,
    }
    const command = `svccloud() { '${nodeBinary()}' '${join(ROOT, 'cli/main.ts')}' "$@"; }`
    for (const line of TASKS.flatMap(({ commands, isAsked = false }) => (isAsked ? [] : commands)))
      await run('bash', ['-ec', `${command}\n${line} < /dev/null`], { cwd: folder, env }).catch((error: unknown) => {
        throw new Error(line, { cause: error })
      })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})
