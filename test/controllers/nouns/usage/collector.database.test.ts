import { expect, test } from 'vitest'
import { openSweepRate } from '../../../../controllers/kit/sweep-rate.ts'
import { openUsageCollector } from '../../../../controllers/nouns/usage/collector.ts'
import { listServerTransfers } from '../../../../db/usage/index.ts'
import { monthAround } from '../../../../domain/billing/transfer.ts'
import { NO_COUNTERS } from '../../../../domain/usage/rules.ts'
import { openCaches } from '../../../../kit/kube/caches.ts'
import type { Store } from '../../../../kit/kube/store.ts'
import { systemClock } from '../../../../kit/sys/clock.ts'
import { OUTAGE_MILLISECONDS } from '../../../../kit/sys/outages.ts'
import { type Logger, silentLog } from '../../../../kit/sys/log.ts'
import { openRegistry } from '../../../../kit/sys/metrics.ts'
import { systemRandom as random } from '../../../../kit/sys/random.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { type GuestUsage, Instance, nodeNamespace } from '../../../../resources/instance/index.ts'
import { Node } from '../../../../resources/node/index.ts'
import { createAccount } from '../../../accounts.ts'
import { instanceSpec } from '../../../agents/node/instance-spec.ts'
import { useDatabase } from '../../../database.ts'

const database = useDatabase()
const NODE = 'n1'
const GUEST = '6f1c9f0e-5b0a-4c51-9d53-0c9a3c1f7a11'
const store = {} as Store // the caches are filled by hand

/** A host whose guests have moved what `moved` says, and what its account sees of it. */
async function openHost() {
  const accountId = await createAccount(database.db)
  const warnings: string[] = []
  const time = { passed: 0 }
  const clock = { ...systemClock, monotonicMilliseconds: () => time.passed }
  const log: Logger = { ...silentLog, warn: (message) => void warnings.push(message) }
  const caches = openCaches({ store, clock, random, log, registry: openRegistry({ isProcessWide: false }) })
  const status = { state: 'ready', endpoint: { url: 'https://n1.example', certificateFingerprint: '' } } as const
  caches.of(Node).apply({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: NODE, resourceVersion: '1' },
    spec: {
      zone: 'zone-1',
      rack: 'r1',
      roles: ['compute'],
      isCordoned: false,
      cpuOvercommit: 4,
      reservedMemoryMebibytes: 0,
    },
    status,
  })
  const moved = new Map<string, number>()
  const silence = { isSilent: false }
  const usageOf = async (): Promise<GuestUsage[]> => {
    if (silence.isSilent) throw new Error('the agent did not answer in time')
    return [...moved].map(([instance, networkTransmittedBytes]) => ({
      instance,
      epoch: `${instance}/1`,
      counters: { ...NO_COUNTERS, networkTransmittedBytes },
    }))
  }
  const instances = caches.of(Instance)
  const key = { namespace: nodeNamespace(NODE), name: GUEST }
  return {
    moved,
    warnings,
    time,
    silence,
    collect: openUsageCollector({
      store,
      caches,
      db: database.db,
      clock,
      random,
      log,
      usageOf,
      sweepRate: openSweepRate(clock),
    }),
    begin: () =>
      void instances.apply({
        apiVersion: 'v1',
        kind: 'Instance',
        metadata: { ...key, resourceVersion: '2' },
        spec: instanceSpec({ server: { namespace: accountNamespace(accountId), name: 'web', uid: GUEST } }),
      }),
    end: () => void instances.takeList({ items: [], resourceVersion: '3' }),
    transmitted: async () =>
      (await listServerTransfers(database.db, accountId, monthAround(clock.now()))).map(
        ({ serverId, transmittedBytes }) => [serverId, transmittedBytes],
      ),
  }
}

test('the last traffic of a guest counts for its server, also when its Instance is deleted before a poll', async () => {
  const host = await openHost()
  host.begin()
  await host.collect() // nothing has been moved yet
  host.end()
  host.moved.set(GUEST, 7)
  await host.collect()
  host.moved.set(GUEST, 9)
  await host.collect()
  expect(await host.transmitted()).toEqual([['web', 9]])
})

test("guests that no Instance ever named are nobody's", async () => {
  const host = await openHost()
  host.moved.set('stray', 7)
  await host.collect()
  expect(await host.transmitted()).toEqual([])
})

test('a host that leaves some looks without an answer wakes nobody; one that is silent on does', async () => {
  const host = await openHost()
  for (const isSilent of [true, true, true, false, true, true, true]) {
    host.silence.isSilent = isSilent
    host.time.passed += OUTAGE_MILLISECONDS / 3
    await host.collect()
  }
  expect(host.warnings).toEqual([])
  host.time.passed += OUTAGE_MILLISECONDS / 3
  await host.collect()
  expect(host.warnings).toEqual(['usage of a node not collected'])
})
