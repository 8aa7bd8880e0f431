/** A private network from POST /v1/networks until its operation has succeeded, with claims, audit, the controllers and
 *  its rows in a real database of OVN, against the same rows written by hand in one transaction. No host follows. */
import { encodeBundle } from '../controllers/network/ovn/difference.ts'
import { openOvn } from '../controllers/network/ovn/open-ovn.ts'
import { connectOvsdb } from '../controllers/network/ovn/ovsdb.ts'
import { systemClock as clock } from '../kit/sys/clock.ts'
import { silentLog as log } from '../kit/sys/log.ts'
import { Zone } from '../resources/catalog/index.ts'
import { openOvnDatabases } from '../test/controllers/network/ovn/ovn-databases.ts'
import { until } from '../test/eventually.ts'
import { openCloud, ZONE } from './cloud.ts'
import { openProcess } from './controllers.ts'
import { bulkNetwork } from './network-zone.ts'
import { type Bench, median, percentile, repeat } from './runner.ts'

const LATENCY = 'ms until it is ready, p95'
const POLL_MILLISECONDS = 2

export const bench: Bench = {
  name: 'B63 create networks',
  question: 'a private network from its request until it is ready',
  subjectName: 'svccloud',
  peerName: 'its rows in OVN by hand',
  unit: 'networks',
  goal: 0.02,
  limits: { [LATENCY]: 500 },
  heldBy:
    'a request commits twice in PostgreSQL and once in Kubernetes, its controller claims and writes the status, and ' +
    'whether it is ready is asked for again and again by the same process; by hand it is one transaction.',
  tier: 'network',
  async open() {
    const databases = await openOvnDatabases()
    await databases.northbound().transact('OVN_Northbound', [{ op: 'insert', table: 'NB_Global', row: {} }])
    const cloud = await openCloud(['n1'])
    await cloud.startCaches()
    const ovn = openOvn({ northbound: databases.remote, clock, log })
    const process = openProcess(cloud, clock, ovn)
    await process.fill()
    process.begin()
    await until(
      'the zone',
      async () => {
        await cloud.store.patch(Zone, { name: ZONE }, { status: { hasPrivateNetworks: true } }, 'status')
        return cloud.caches.of(Zone).get({ name: ZONE })?.status?.hasPrivateNetworks
      },
      (has) => has === true,
    )
    const database = connectOvsdb(databases.remote, { clock })
    const taken: number[] = []
    let made = 0

    const request = async (method: string, target: string, body?: object) => {
      const response = await cloud.app.customers({
        method,
        target,
        remoteAddress: '127.0.0.1',
        signal: new AbortController().signal,
        headers: {
          authorization: `Bearer ${cloud.tokens[made % cloud.tokens.length]}`,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      if (response.status >= 300) throw new Error(`${method} ${target} answered ${response.status}: ${response.body}`)
      return JSON.parse(String(response.body)) as {
        readonly operation: { readonly id: string; readonly status: string }
      }
    }
    const create = async () => {
      const startedAt = clock.monotonicMilliseconds()
      const { operation } = await request('POST', '/v1/networks', { zone: ZONE, name: `network-${made++}` })
      let { status } = operation
      while (status !== 'succeeded') {
        if (status === 'failed') throw new Error('a network was not made')
        await clock.sleep(POLL_MILLISECONDS)
        status = (await request('GET', `/v1/operations/${operation.id}`)).operation.status
      }
      taken.push(clock.monotonicMilliseconds() - startedAt)
    }
    const write = async () => {
      const { rows } = encodeBundle(bulkNetwork(made++))
      const operations = [...rows.values()].flatMap(({ table, uuid, columns, parent }) => [
        { op: 'insert', table, uuid, row: columns },
        ...(parent === undefined
          ? []
          : [
              {
                op: 'mutate',
                table: parent.table,
                where: [['_uuid', '==', ['uuid', parent.uuid]]],
                mutations: [[parent.column, 'insert', ['set', [['uuid', uuid]]]]],
              },
            ]),
      ])
      await database.transact('OVN_Northbound', operations)
    }
    return {
      subject: { run: (seconds) => repeat(1, seconds, create) },
      peer: { run: (seconds) => repeat(1, seconds, write) },
      facts: () => ({
        'ms until it is ready, median': median(taken).toFixed(0),
        [LATENCY]: percentile(taken, 0.95).toFixed(0),
      }),
      async close() {
        await process.stop()
        database.close()
        ovn.close()
        await cloud.close()
        await databases.close()
      },
    }
  },
}
