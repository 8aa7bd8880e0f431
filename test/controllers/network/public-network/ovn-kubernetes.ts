/** The embedded Kubernetes API where the hosts of an OVN world reach it. Says its kubeconfig as a line of JSON, then
 *  takes orders as lines of JSON from its standard input and answers each with one. Ends with its input. Arguments:
 *  folder, address. */
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { startKubernetesApi } from '../../../../embedded/kubernetes/server/serve.ts'
import { openClient } from '../../../../kit/kube/client.ts'
import { installCrds } from '../../../../kit/kube/crd.ts'
import { crds } from '../../../../controllers/kit/crds.ts'
import { openHttpsTransport } from '../../../../kit/kube/https-transport.ts'
import { readKubeconfig } from '../../../../kit/kube/kubeconfig.ts'
import { type Key, type KubeObject, Namespace, Secret } from '../../../../kit/kube/object.ts'
import type { Draft } from '../../../../kit/kube/store.ts'
import { systemClock as clock } from '../../../../kit/sys/clock.ts'
import { silentLog as log } from '../../../../kit/sys/log.ts'
import { exitProcess, printLine } from '../../../../kit/sys/process.ts'
import { systemRandom as random } from '../../../../kit/sys/random.ts'
import {
  Instance,
  type InstanceSpec,
  type InstanceStatus,
  NodeReport,
  Volume,
} from '../../../../resources/instance/index.ts'

const TYPES = { Namespace, Secret, Instance, Volume, NodeReport } as const
export type Kind = keyof typeof TYPES
export interface ObjectOrders {
  readonly create: { readonly kind: Kind; readonly object: Partial<KubeObject> }
  readonly get: { readonly kind: Kind; readonly key: Key }
  readonly patch: { readonly kind: Kind; readonly key: Key; readonly patch: object }
}
type Order = { [What in keyof ObjectOrders]: { readonly do: What } & ObjectOrders[What] }[keyof ObjectOrders]

const [folder = '', address = ''] = process.argv.slice(2)
const server = await startKubernetesApi({
  folder: join(folder, 'kubernetes'),
  host: address,
  port: 0,
  clock,
  random,
  log,
})
const https = openHttpsTransport(await readKubeconfig(server.kubeconfig, clock))
const store = openClient({ transport: https.transport, fieldManager: 'tests', clock, random })
await installCrds(store, crds(), clock)
printLine(JSON.stringify({ kubeconfig: server.kubeconfig }))

const carryOut = (order: Order): Promise<unknown> => {
  const type = TYPES[order.kind] as typeof Instance // each order is sent in the form of its kind
  if (order.do === 'create') return store.create(type, order.object as Draft<InstanceSpec, InstanceStatus>)
  return order.do === 'get' ? store.get(type, order.key) : store.patch(type, order.key, order.patch)
}
for await (const line of createInterface({ input: process.stdin })) {
  // the tests write it
  const answer = await carryOut(JSON.parse(line) as Order).catch((error: unknown) => ({ error: String(error) }))
  printLine(JSON.stringify(answer ?? null))
}
await https.close()
await server.stop()
exitProcess(0)
