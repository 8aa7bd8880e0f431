/** `kill -9` of everything at once, with a real guest, which is found again. `survival.endurance.test.ts` does it in
 *  the middle of changes. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { eventually } from '../eventually.ts'
import { openSurvivor, type Survivor } from './survivor.ts'

let survivor: Survivor
beforeAll(async () => void (survivor = await openSurvivor('survivor@example.com')))
afterAll(() => survivor?.close())

it('finds a running guest again after everything was killed', async () => {
  const { server, operation } = await survivor.create('survivor')
  expect(await survivor.customer.finished(operation.id)).toMatchObject({ status: 'succeeded' })
  const guests = await survivor.product.guests()
  expect(guests).toHaveLength(1)
  const before = survivor.customer.console(server.id)
  await before.see(/root@survivor:~# /, 0)
  await before.type('touch /tmp/before\n')
  before.close()

  await survivor.product.killEverything()
  expect(await survivor.product.guests()).toEqual(guests)
  await survivor.restart()

  expect(await survivor.product.guests()).toEqual(guests)
  expect(await survivor.customer.server(server.id)).toMatchObject({ state: 'started' })
  const after = await eventually('the console', async () => {
    const console = survivor.customer.console(server.id)
    await console.see(/survivor/, 0, 2_000).catch((error: unknown) => {
      console.close()
      throw error
    })
    return console
  })
  const shown = after.shown.length
  await after.type('ls /tmp\n')
  await after.see(/before/, shown)
  after.close()
  expect(await survivor.customer.finished((await survivor.remove(server.id)).id)).toMatchObject({ status: 'succeeded' })
  await survivor.nothingIsLeft()
})
