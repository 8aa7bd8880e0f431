/** A playground with its real guest, from its state to its end. It takes the image of nodes, in the folder that
 *  SVCCLOUD_IMAGE_CACHE names, and minutes where guests are emulated. */
import { execFile } from 'node:child_process'
import { access, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openTemplateStore } from '../../../../agents/node/images/template-store.ts'
import { KUBERNETES_NODE_TEMPLATE } from '../../../../domain/managed-machine/rules.ts'
import { GuestTemplates } from '../../../../hosting/processes/guests/template.ts'
import { GUEST_SIZE } from '../../../../hosting/processes/host.ts'
import { readRecord } from '../../../../hosting/processes/record.ts'
import { probePort } from '../../../../embedded/kit/ports.ts'
import { BUSYBOX_IMAGE } from '../../../../domain/kubernetes-cluster/versions.ts'
import { systemClock } from '../../../../kit/sys/clock.ts'
import { silentLog } from '../../../../kit/sys/log.ts'
import { environment } from '../../../../kit/sys/process.ts'
import { buildTool, toolPath } from '../../../../tools/cluster/build.ts'
import { until } from '../../../eventually.ts'
import { type Hosted, newDesired, openHosted } from '../hosted.ts'
import { reachedFrom } from './reach.ts'

const DOMAIN = 'apps.test'
const NAME = 'pg-0123456789'
const HOUR = 3_600_000
const MINUTES = 60_000
const LIMITS = { vcpus: 2, memoryMebibytes: 1_024, storageGibibytes: 4, pods: 24, volumes: 4 }

const parts = { clock: systemClock, log: silentLog }
const images = environment()['SVCCLOUD_IMAGE_CACHE']
const store = images === undefined ? undefined : openTemplateStore({ folder: images, ...parts })
const isThere = (await store?.newest(KUBERNETES_NODE_TEMPLATE))?.is === 'ready'

const title = isThere ? 'a playground' : 'a playground (SVCCLOUD_IMAGE_CACHE names no image of nodes as it is now)'

describe.skipIf(!isThere)(title, () => {
  let folder: string
  let hosted: Hosted
  let templates: GuestTemplates
  let port: number
  /** Before there was one. */
  let reserved: number
  /** By how much the clock of the host is ahead. */
  let ahead = 0
  const desired = newDesired({ guest: { name: NAME, endsAt: new Date(Date.now() + HOUR).toISOString(), ...LIMITS } })
  const file = (name: string) => join(folder, name)
  const kubectl = async (...words: readonly string[]): Promise<string> =>
    (await promisify(execFile)(toolPath('kubectl'), ['--kubeconfig', file('kubeconfig'), ...words])).stdout
  const apply = async (objects: readonly object[]) => {
    await writeFile(file('objects.json'), JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }))
    return kubectl('apply', '-f', file('objects.json'))
  }
  const inPod = (...words: readonly string[]) => kubectl('exec', 'deployment/web', '--', ...words)

  beforeAll(async () => {
    await buildTool('kubectl')
    folder = await mkdtemp(join(tmpdir(), 'playground-'))
    if (store === undefined) throw new Error('there is no image')
    templates = new GuestTemplates({ folder: file('guests'), images: store, size: GUEST_SIZE, hasKvm: false, ...parts })
    await until(
      'its template',
      () => templates.find(),
      (found) => found !== undefined,
      10 * MINUTES,
    )
    port = await probePort('127.0.0.1', 0)
    const clock = { ...systemClock, now: () => new Date(Date.now() + ahead) }
    hosted = await openHosted({ clock, guests: { templates, appDomain: DOMAIN, port } })
    reserved = (await hosted.host.offer()).reservedBytes
    await hosted.host.ensure(desired)
    const state = await until(
      'its node',
      () => hosted.host.get(desired.id),
      (found) => found?.phase === 'running',
      4 * MINUTES,
    )
    const { token } = await hosted.host.userToken(desired.id, 'admin', 3_600)
    const authority = Buffer.from(state?.certificateAuthority ?? '').toString('base64')
    const cluster = { server: state?.endpoint, 'certificate-authority-data': authority }
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'own',
      users: [{ name: 'own', user: { token } }],
      clusters: [{ name: 'own', cluster }],
      contexts: [{ name: 'own', context: { cluster: 'own', user: 'own' } }],
    }
    await writeFile(file('kubeconfig'), JSON.stringify(config))
  }, 16 * MINUTES)

  afterAll(async () => {
    templates?.stop()
    await hosted?.end()
    await rm(folder, { recursive: true, force: true })
  }, MINUTES)

  const get = (host: string): Promise<string> =>
    new Promise((resolve, reject) => {
      const asked = request({ host: '127.0.0.1', port, headers: { host } }, async (response) => {
        let text = ''
        for await (const chunk of response.setEncoding('utf8')) text += String(chunk)
        resolve(`${response.statusCode} ${text.trim()}`)
      })
      asked.once('error', reject)
      asked.end()
    })

  test('its node is ready, and what runs there is served by its name', { timeout: 6 * MINUTES }, async () => {
    expect(await kubectl('get', 'nodes', '--no-headers')).toMatch(new RegExp(`^${NAME} +Ready`))
    await apply([CLAIM, DEPLOYMENT, SERVICE, INGRESS])
    await kubectl('rollout', 'status', 'deployment/web', '--timeout=240s')
    await until(
      'an answer',
      () => get(`web.${NAME}.${DOMAIN}`),
      (said) => said === '200 hello',
      2 * MINUTES,
    )
    expect(await get(`other.${NAME}.${DOMAIN}`)).toMatch(/^404/)
    await until(
      'where it is served',
      () => kubectl('get', 'ingress', 'web'),
      (said) => said.includes(DOMAIN),
      MINUTES,
    )
  })

  test('names of the cluster are known, and none outside', { timeout: 3 * MINUTES }, async () => {
    await kubectl('-n', 'kube-system', 'rollout', 'status', 'deployment/coredns', '--timeout=150s')
    const lookUp = (name: string) => inPod('sh', '-c', `nslookup -type=a ${name} 2>&1; true`)
    expect(await lookUp('web.default.svc.cluster.local')).toMatch(/Address: +10\.96\.(?!0\.10\b)/)
    expect(await lookUp('debian.org')).toContain('NXDOMAIN')
  })

  test('nothing of this machine and nothing outside is reached from a pod', { timeout: 3 * MINUTES }, async () => {
    const record = await readRecord(join(hosted.folder, desired.id))
    const [own] = record?.replicas ?? []
    if (record === undefined || own === undefined) throw new Error('there is no record')
    const api = { host: '10.96.0.1', port: 443 }
    expect(await reachedFrom(inPod, [api])).toEqual(['10.96.0.1 443'])
    const ports = [record.endpointPort, own.api, own.etcdClient, port]
    const here = ['10.0.2.2', '10.0.2.100', '127.0.0.1'].flatMap((host) => ports.map((at) => ({ host, port: at })))
    const outside = ['169.254.169.254', '1.1.1.1'].map((host) => ({ host, port: 80 }))
    expect(await reachedFrom(inPod, [...here, ...outside])).toEqual([])
  })

  test('what it may use is bounded, and stays so', { timeout: 2 * MINUTES }, async () => {
    expect(await kubectl('get', 'pods', '-l', 'app=web', '-o', 'jsonpath={..limits.memory}')).toContain('128Mi')
    await expect(kubectl('create', 'service', 'loadbalancer', 'out', '--tcp=80:80')).rejects.toThrow('exceeded quota')
    await kubectl('delete', 'resourcequota', 'playground')
    await until(
      'its quota',
      () => kubectl('get', 'resourcequota', '-o', 'name'),
      (said) => said !== '',
      MINUTES,
    )
  })

  test('a volume stays when its pod goes', { timeout: 4 * MINUTES }, async () => {
    await inPod('sh', '-c', 'echo kept > /data/file && sync')
    await kubectl('delete', 'pod', '-l', 'app=web', '--grace-period=1')
    await kubectl('rollout', 'status', 'deployment/web', '--timeout=180s')
    expect(await inPod('cat', '/data/file')).toBe('kept\n')
  })

  test('it ends in time though its control plane stands still, and leaves nothing', { timeout: MINUTES }, async () => {
    const at = join(hosted.folder, desired.id)
    const pids = ['guest', 'etcd-0', 'kube-apiserver-0'].map((name) => hosted.host.pid(desired.id, name) ?? 0)
    const [, ...plane] = pids
    for (const pid of plane) process.kill(pid, 'SIGSTOP')
    ahead = HOUR
    await until(
      'its end',
      () => hosted.host.get(desired.id),
      (found) => found === undefined,
      50_000,
    )
    for (const pid of pids) expect(() => process.kill(pid, 0)).toThrow()
    await expect(access(at)).rejects.toThrow()
    expect((await hosted.host.offer()).reservedBytes).toBe(reserved)
    expect(await get(`web.${NAME}.${DOMAIN}`)).toMatch(/^404/)
  })
})

const labels = { app: 'web' }
const named = { metadata: { name: 'web' } }
const CLAIM = {
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  ...named,
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
}
const SERVE = 'echo hello > /tmp/index.html && exec httpd -f -p 80 -h /tmp'
const DEPLOYMENT = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  ...named,
  spec: {
    selector: { matchLabels: labels },
    strategy: { type: 'Recreate' },
    template: {
      metadata: { labels },
      spec: {
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
}
const SERVICE = { apiVersion: 'v1', kind: 'Service', ...named, spec: { selector: labels, ports: [{ port: 80 }] } }
const INGRESS = {
  apiVersion: 'networking.k8s.io/v1',
  kind: 'Ingress',
  ...named,
  spec: {
    rules: [
      {
        host: `web.${NAME}.${DOMAIN}`,
        http: {
          paths: [{ path: '/', pathType: 'Prefix', backend: { service: { name: 'web', port: { number: 80 } } } }],
        },
      },
    ],
  },
}
