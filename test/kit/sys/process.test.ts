import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { nodeBinary } from '../../../kit/sys/process.ts'

const MODULE = join(import.meta.dirname, '../../../kit/sys/process.ts')
/** Tells its parent something after that has gone, and ends as it does then. */
const CODE = `
const { onFatal, sendToParent } = await import(${JSON.stringify(MODULE)})
onFatal(() => {})
process.once('disconnect', () => {
  sendToParent({ ready: true })
  setImmediate(() => setImmediate(() => process.exit(0)))
})
sendToParent({ here: true })
`

test('sending to a dead parent does not fail the sender', async () => {
  const child = spawn(nodeBinary(), ['--input-type=module', '--eval', CODE], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  const ended = once(child, 'exit')
  expect((await once(child, 'message'))[0]).toEqual({ here: true })
  child.disconnect()
  expect(await ended).toEqual([0, null])
})
