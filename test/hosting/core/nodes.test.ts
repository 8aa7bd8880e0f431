/** Drains of nodes, by what the API of a cluster answers. */
import { expect, test } from 'vitest'
import type { KubeApi } from '../../../hosting/core/kube-api.ts'
import { drainNode } from '../../../hosting/core/nodes.ts'
import { Scheduler, SimulatedProcess } from '../../sim/scheduler.ts'

const COUNT = 100

/** A node with pods, whose evictions take that time, and answer what `judge` says. Terminating pods stay. */
function playNode(judge: (pod: string) => number, evictionMilliseconds = 0) {
  const scheduler = new Scheduler(1)
  const process = new SimulatedProcess('reader', scheduler)
  process.begin()
  const clock = process.clock()
  const gone = new Set<string>()
  const pods = () =>
    Array.from({ length: COUNT }, (_, index) => `pod-${index}`)
      .filter((name) => !gone.has(name))
      .map((name) => ({ metadata: { name, namespace: 'default' }, status: { phase: 'Running' } }))
  const api: KubeApi = {
    url: 'https://api',
    client: {
      async send(url, { timeoutMilliseconds } = {}) {
        const [, pod] = /pods\/([a-z0-9-]+)\/eviction$/.exec(url) ?? []
        if (pod === undefined)
          return { status: 200, text: url.includes('/pods?') ? JSON.stringify({ items: pods() }) : '{}' }
        expect(timeoutMilliseconds).toBeLessThanOrEqual(9_000)
        await clock.sleep(evictionMilliseconds)
        const status = judge(pod)
        if (status === 201) gone.add(pod)
        return { status, text: '' }
      },
      open: () => Promise.reject(new Error('nobody reads a stream')),
      close: () => {},
    },
  }
  /** Fails when the round takes longer than the platform waits for it. */
  async function drain(): Promise<boolean> {
    let isDrained: boolean | undefined
    void drainNode(api, 'node', { clock, random: scheduler.random }).then((is) => (isDrained = is))
    await scheduler.runUntil(clock.monotonicMilliseconds() + 15_000, () => isDrained !== undefined)
    if (isDrained === undefined) throw new Error('the round does not end in time')
    return isDrained
  }
  return { drain, gone }
}

test('slow evictions end their round in time, and rounds drain the node', async () => {
  const { drain, gone } = playNode(() => 201, 5_000)
  let isDrained = false
  for (let round = 0; !isDrained && round < COUNT; round++) {
    const left = gone.size
    isDrained = await drain()
    if (!isDrained) expect(gone.size).toBeGreaterThan(left)
  }
  expect(isDrained).toBe(true)
})

test('a pod whose eviction fails keeps no other on the node', async () => {
  const { drain, gone } = playNode((pod) => (pod === 'pod-3' ? 500 : 201))
  expect(await drain()).toBe(false)
  expect(gone.size).toBe(COUNT - 1)
  expect(await drain()).toBe(false)
})

test('pods whose slow evictions are refused keep no other on the node', async () => {
  const isStubborn = (pod: string) => Number(pod.slice('pod-'.length)) < 50
  const { drain, gone } = playNode((pod) => (isStubborn(pod) ? 429 : 201), 5_000)
  // chance decides where a round begins: a node that always began with the first pods would never get there
  for (let round = 0; gone.size < 50 && round < 10_000; round++) await drain()
  expect(gone.size).toBe(50)
})
