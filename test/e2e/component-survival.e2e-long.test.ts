/** `kill -9` of each component, and of the supervisor of them all, with a real guest: afterwards all converges. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { signalProcess } from '../../kit/sys/process.ts'
import { eventually } from '../eventually.ts'
import { openSurvivor, type Survivor } from './survivor.ts'

let survivor: Survivor
beforeAll(async () => void (survivor = await openSurvivor('survivor@example.com')))
afterAll(() => survivor?.close())

describe('one component killed in the middle of a change', () => {
  it.each(['postgres', 'kubernetes', 'controllers', 'apiserver', 'agent-eu-1a-1'])('%s', async (component) => {
    const { server, operation } = await survivor.create(`without-${component}`)
    await survivor.product.killComponent(component)
    expect(await survivor.customer.finished(operation.id)).toMatchObject({ status: 'succeeded' })
    expect(await survivor.product.guests()).toHaveLength(1)
    const deletion = await survivor.remove(server.id)
    await survivor.product.killComponent(component)
    expect(await survivor.customer.finished(deletion.id)).toMatchObject({ status: 'succeeded' })
    await survivor.nothingIsLeft()
  })
})

it('ends the components with their supervisor, and never the guests', async () => {
  const { operation } = await survivor.create('orphan')
  expect(await survivor.customer.finished(operation.id)).toMatchObject({ status: 'succeeded' })
  const [guests, components] = [await survivor.product.guests(), [...(await survivor.product.processes()).values()]]
  signalProcess(survivor.product.endpoints.pid, 'SIGKILL')
  await eventually('the components to end', async () => components.every((pid) => !signalProcess(pid, 0)))
  expect(await survivor.product.guests()).toEqual(guests)
  await survivor.restart()
  expect(await survivor.product.guests()).toEqual(guests)
})
