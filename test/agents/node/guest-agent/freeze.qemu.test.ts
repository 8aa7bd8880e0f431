/** A real guest whose file system is frozen through its virtio port, by an agent that is a shell script in it. */
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Hypervisor } from '../../../../agents/node/drivers/hypervisor/hypervisor.ts'
import { openQemuMachine } from '../qemu-machine.ts'
import { AGENT, guestShell, PROMPT } from './guest-shell.ts'

const NAME = '6f1c9f0e-5b0a-4c51-9d53-0c9a3c1f7a12'

let machine: Awaited<ReturnType<typeof openQemuMachine>>
let hypervisor: Hypervisor

beforeEach(async () => {
  machine = await openQemuMachine()
  hypervisor = await machine.host(0).attach()
  await hypervisor.start(await machine.definition(NAME, 1, 'boot'))
  await until((text) => text.includes(PROMPT))
})
afterEach(async () => {
  await hypervisor.forget(NAME)
  await hypervisor.close()
  await machine.close()
})

const { type, until } = guestShell(
  (isTrue) => machine.until(isTrue),
  () => hypervisor.console(NAME),
)
const monitor = () => hypervisor.monitorOf(NAME) ?? expect.fail('the guest does not run')
/** One that is frozen cannot be frozen again. */
const expectFrozen = (isFrozen: boolean) =>
  type('fsfreeze --freeze /data 2>/dev/null; echo "code $?"', isFrozen ? /^code 1\r?$/m : /^code 0\r?$/m)

it('freezes the file system for the work, and thaws it, also after an agent that was killed between', async () => {
  const unfrozen = await monitor().whileFrozen(async () => 'no agent yet')
  expect(unfrozen).toEqual({ result: 'no agent yet', isFrozen: false })
  await type(AGENT, /agent-is-up\r?$/m)
  expect(await monitor().whileFrozen(() => expectFrozen(true))).toMatchObject({ isFrozen: true })
  await type('touch /data/written && echo "it is thawed"', /^it is thawed\r?$/m)

  const begun = Promise.withResolvers<void>()
  void monitor().whileFrozen(() => new Promise<never>(() => begun.resolve()))
  await begun.promise
  await expectFrozen(true)
  await hypervisor.close()
  hypervisor = await machine.host(0).attach()
  expect(await hypervisor.inspect(NAME)).toMatchObject({ state: 'running' })
  await type('touch /data/again && echo "it is thawed again"', /^it is thawed again\r?$/m)
})
