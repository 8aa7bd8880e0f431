/** Accepted server creations (claims, audit, operation; durable) against raw creations in the embedded store, durable
 *  as well. */
import { newUuid, systemRandom as random } from '../kit/sys/random.ts'
import { Server } from '../resources/server/index.ts'
import { openCloud, serverSpec } from './cloud.ts'
import { createServer } from './creations.ts'
import { type Bench, closedLoop } from './runner.ts'

const CLIENTS = 32

export const bench: Bench = {
  name: 'B02 create servers',
  question: 'POST /v1/servers to 202, one hot account, 32 in flight',
  subjectName: 'accepted creations',
  peerName: 'raw creations in the embedded store',
  unit: 'servers',
  goal: 0.15,
  tier: 'database',
  async open() {
    const cloud = await openCloud(['n1', 'n2', 'n3'])
    await cloud.startCaches()
    let made = 0
    const create = async () => void (await createServer(cloud, cloud, made++))
    const createRaw = async () => {
      await cloud.store.create(Server, {
        metadata: { name: newUuid(random), namespace: cloud.namespace },
        spec: serverSpec(0),
      })
    }
    return {
      subject: { run: (seconds) => closedLoop(CLIENTS, seconds, create) },
      peer: { run: (seconds) => closedLoop(CLIENTS, seconds, createRaw) },
      close: () => cloud.close(),
    }
  },
}
