import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { openGroup } from '../../../tools/test/meter.ts'

const run = promisify(execFile)
const BUSY = 'const end = process.cpuUsage().user + 3e5; while (process.cpuUsage().user < end);'
/** It ends before what it starts, whose output is open until that has ended. */
const ORPHAN = `require('child_process').spawn(process.execPath, ['-e', ${JSON.stringify(BUSY)}],
  { detached: true, stdio: ['ignore', 'inherit', 'ignore'] }).unref()`

it('counts processes that outlive their parents, and nothing else', async ({ skip }) => {
  const [meter, idle] = [await openGroup(), await openGroup()]
  if (meter === undefined || idle === undefined) return skip('there are no control groups, or no right to make one')
  const [program = '', ...flags] = meter.within([process.execPath, '-e', ORPHAN])
  await run(program, flags)
  expect(await meter.close()).toBeGreaterThan(0.3)
  expect(await idle.close()).toBe(0)
})
