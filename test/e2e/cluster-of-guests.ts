/** A customer whose clusters have real nodes: guests of the image of an operator, in the folder that
 *  SVCCLOUD_IMAGE_CACHE names. Emulated ones take minutes for everything. */
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { openTemplateStore } from '../../agents/node/images/template-store.ts'
import { type Client, createClient } from '../../client/index.ts'
import { BUSYBOX_IMAGE } from '../../domain/kubernetes-cluster/versions.ts'
import { systemClock } from '../../kit/sys/clock.ts'
import { silentLog } from '../../kit/sys/log.ts'
import { environment } from '../../kit/sys/process.ts'
import { buildTool } from '../../tools/cluster/build.ts'
import { until } from '../eventually.ts'
import { Customer } from './customer.ts'
import { newFolder, Product } from './product.ts'
import { UNREAD } from './warnings.ts'

export const MINUTES = 60_000
export const ZONE = 'eu-1a'
export const IMAGES = environment()['SVCCLOUD_IMAGE_CACHE']
/** As often as the platform lets people ask. */
const LOOK_MILLISECONDS = 2_000

/** Whether that folder has the image as it is now. */
export async function hasImage(template: string): Promise<boolean> {
  if (IMAGES === undefined) return false
  const store = openTemplateStore({ folder: IMAGES, clock: systemClock, log: silentLog })
  return (await store.newest(template))?.is === 'ready'
}

export type Kubectl = (...flags: readonly string[]) => Promise<string>

export interface Cloud {
  readonly data: string
  readonly product: Product
  readonly client: Client
}

/** What starts takes a route to public addresses, as the outside has it. */
export async function startCloud(email: string): Promise<Cloud> {
  const data = await newFolder()
  const product = await Product.start({
    data,
    flags: ['--hypervisor', 'qemu', '--nodes', `${ZONE}=1`, '--public-route'],
    environment: { SVCCLOUD_IMAGE_CACHE: IMAGES ?? '' },
    warnings: UNREAD,
  })
  const customer = await Customer.signUp(() => product, email)
  await customer.addSshKey()
  return { data, product, client: createClient({ url: product.endpoints.api_url, token: customer.token }) }
}

/** Until it is good, seldom enough for the API. */
export const came = <Value>(
  what: string,
  look: () => Promise<Value>,
  isGood: (value: Value) => boolean,
  minutes: number,
): Promise<Value> => {
  let isFirst = true
  const slowly = async () => {
    if (!isFirst) await sleep(LOOK_MILLISECONDS)
    isFirst = false
    return look()
  }
  return until(what, slowly, isGood, minutes * MINUTES)
}

export const kubeconfigFileOf = (data: string, name: string): string => join(data, `${name}.kubeconfig`)

/** As whoever has that kubeconfig. */
export async function kubectlIn(data: string, name: string, kubeconfig: string): Promise<Kubectl> {
  const file = kubeconfigFileOf(data, name)
  await writeFile(file, kubeconfig, { mode: 0o600 })
  const program = await buildTool('kubectl')
  return async (...flags) => (await promisify(execFile)(program, ['--kubeconfig', file, ...flags])).stdout
}

export async function apply(kubectl: Kubectl, data: string, items: readonly object[]): Promise<void> {
  const file = join(data, 'objects.json')
  await writeFile(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items }))
  await kubectl('apply', '-f', file)
}

const LABELS = { app: 'web' }
const NAMED = { metadata: { name: 'web' } }
const SERVE = 'echo hello > /tmp/index.html && echo serving && exec httpd -f -p 80 -h /tmp'

/** A program that serves, with a separate volume, and its service of that type. */
export const application = (type: 'ClusterIP' | 'LoadBalancer'): readonly object[] => [
  {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    ...NAMED,
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
  },
  {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    ...NAMED,
    spec: {
      selector: { matchLabels: LABELS },
      strategy: { type: 'Recreate' },
      template: {
        metadata: { labels: LABELS },
        spec: {
          terminationGracePeriodSeconds: 2,
          volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'web' } }],
          containers: [
            {
              name: 'web',
              image: BUSYBOX_IMAGE,
              command: ['sh', '-c', SERVE],
              volumeMounts: [{ name: 'data', mountPath: '/data' }],
            },
          ],
        },
      },
    },
  },
  {
    apiVersion: 'v1',
    kind: 'Service',
    ...NAMED,
    spec: { type, selector: LABELS, ports: [{ port: 80 }] },
  },
]

/** What the outside gets of an address, by the route of this machine to it. */
export async function answerOf(address: string, headers: Readonly<Record<string, string>> = {}): Promise<string> {
  const flags = Object.entries(headers).flatMap(([name, value]) => ['--header', `${name}: ${value}`])
  const host = address.includes(':') ? `[${address}]` : address
  const words = ['--silent', '--max-time', '10', '--write-out', '%{http_code}', ...flags, `http://${host}/`]
  return (await promisify(execFile)('curl', words)).stdout
}
