/** When the controller looks. */
import { expect, test } from 'vitest'
import { Node, type NodeObject, Service, type ServiceObject } from '../../../addons/cloud/objects.ts'
import { run } from '../../../addons/cloud/run.ts'
import { Cache } from '../../../kit/kube/cache.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { silentLog } from '../../../kit/sys/log.ts'
import { systemRandom as random } from '../../../kit/sys/random.ts'
import { until } from '../../eventually.ts'
import { newNode, newService } from './objects.ts'

const isNothing = (): never => {
  throw new Error('a listener failed')
}
const at = (version: number, object: NodeObject): NodeObject => ({
  ...object,
  metadata: { ...object.metadata, resourceVersion: String(version) },
})

/** A controller that counts, which says for how long nothing is to be done, or fails. */
function open(answers: readonly (number | Error)[] = []) {
  const services = new Cache(Service, isNothing)
  const nodes = new Cache(Node, isNothing)
  services.takeList({ items: [], resourceVersion: '1' })
  nodes.takeList({ items: [at(1, newNode('web-0'))], resourceVersion: '1' })
  let passes = 0
  const slept: number[] = []
  const clock = {
    ...systemClock,
    async sleep(milliseconds: number, signal?: AbortSignal) {
      slept.push(milliseconds)
      // What it waits for without a change passes at once where a test says so.
      await systemClock.sleep(answers.length > 0 ? 0 : milliseconds, signal)
    },
  }
  const controller = {
    async pass() {
      const answer = answers[passes++] ?? 60_000
      if (answer instanceof Error) throw answer
      return answer
    },
  }
  const stop = new AbortController()
  const ended = run({ controller, services, nodes, clock, random, log: silentLog }, stop.signal)
  return {
    services,
    nodes,
    slept,
    passes: () => passes,
    async end() {
      stop.abort()
      await ended
    },
  }
}
const reached = (passes: () => number, count: number) =>
  until(
    `pass ${count}`,
    () => passes(),
    (found) => found === count,
  )

test('a change of a service, and what decides of a node, wake it; the rest of a node does not', async () => {
  const { services, nodes, passes, slept, end } = open()
  await reached(passes, 1)
  const service: ServiceObject = newService({}, { resourceVersion: '2' })
  services.takeEvent({ type: 'ADDED', object: service })
  await reached(passes, 2)
  await until(
    'it to wait',
    () => slept.length,
    (count) => count === 3,
  )
  nodes.takeEvent({ type: 'MODIFIED', object: at(3, newNode('web-0')) })
  await systemClock.sleep(20)
  expect(slept).toHaveLength(3)
  nodes.takeEvent({ type: 'MODIFIED', object: at(4, newNode('web-0', false)) })
  await reached(passes, 3)
  nodes.takeEvent({ type: 'DELETED', object: at(5, newNode('web-0', false)) })
  await reached(passes, 4)
  await end()
})

test('a failed pass is repeated, later each time, and a successful one resets the delay', async () => {
  const failure = new Error('not now')
  const { slept, end } = open([failure, failure, failure, 5_000, failure])
  await until(
    'five',
    () => slept.length,
    (count) => count >= 5,
  )
  await end()
  const [first = 0, second = 0, third = 0, pending, again = 0] = slept
  expect(pending).toBe(5_000)
  for (const [milliseconds, least] of [
    [first, 1_000],
    [second, 2_000],
    [third, 4_000],
    [again, 1_000],
  ] as const) {
    expect(milliseconds).toBeGreaterThanOrEqual(least)
    expect(milliseconds).toBeLessThanOrEqual(least * 2)
  }
})
