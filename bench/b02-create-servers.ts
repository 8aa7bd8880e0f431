/** Accepted server creations (claims, audit, operation; durable) against raw creations in the embedded store (durable
 *  as well). */
import { newUuid, systemRandom as random } from '../kit/sys/random.ts'
import { Server } from '../resources/server/index.ts'
import { KEY, openCloud, PLAN, TEMPLATE, ZONE } from './cloud.ts'
import { type Bench, closedLoop } from './runner.ts'

const CLIENTS = 32

export const bench: Bench = {
  name: 'B02 create servers',
  question: 'POST /v1/servers to 202, one hot account, 32 in flight',
  subjectName: 'accepted creations',
  peerName: 'raw creations in the embedded store',
  unit: 'servers',
  goal: 0.15,
  async open() {
    const cloud = await openCloud(['n1', 'n2', 'n3'])
    await cloud.startCaches()
    let made = 0
    const create = async () => {
      const number = made++
      const response = await cloud.app.customers({
        method: 'POST',
        target: '/v1/servers',
        remoteAddress: '127.0.0.1',
        signal: new AbortController().signal,
        headers: {
          authorization: `Bearer ${cloud.tokens[number % cloud.tokens.length]}`,
          'content-type': 'application/json',
        },
        body: JSON.stringify({
          zone: ZONE,
          hostname: `server-${number}`,
          plan: PLAN,
          template: TEMPLATE,
          ssh_keys: [KEY],
        }),
      })
      if (response.status !== 202) throw new Error(`answered ${response.status}: ${String(response.body)}`)
    }
    const createRaw = async () => {
      await cloud.store.create(Server, {
        metadata: { name: newUuid(random), namespace: cloud.namespace },
        spec: {
          hostname: 'raw',
          title: '',
          zone: ZONE,
          plan: PLAN,
          template: TEMPLATE,
          labels: {},
          desiredPower: 'running',
          sshKeys: [KEY],
          haPolicy: 'restart',
          migrationPolicy: 'default',
          publicIpv4: false,
          metadataEnabled: true,
          isProtected: false,
        },
      })
    }
    return {
      subject: { run: (seconds) => closedLoop(CLIENTS, seconds, create) },
      peer: { run: (seconds) => closedLoop(CLIENTS, seconds, createRaw) },
      close: () => cloud.close(),
    }
  },
}
