/** The charts with the real helm on a real API server: what they make is valid, installs, upgrades, rolls back and
 *  goes. */

import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Agent, request } from 'undici'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { parseShard } from '../../controllers/kit/shard.ts'
import { ROLE_PERMISSIONS, type Role } from '../../domain/permissions.ts'
import { buildTool } from '../../tools/cluster/build.ts'
import { type RealCluster, startRealCluster } from '../cluster/real-cluster.ts'
import { eventually } from '../eventually.ts'
import { type Helm, kubeconform, openHelm, writeSchemas } from './helm.ts'

const CHARTS = join(import.meta.dirname, '../../charts')
const CONTROL_PLANE = join(CHARTS, 'svccloud')
const NODE_AGENT = join(CHARTS, 'svccloud-node-agent')
const NAMESPACE = 'svccloud-system'
const DATABASE = ['--set', 'database.existingSecret=svccloud-database']
const EVERYTHING = [
  '--set',
  'identityProviders.existingSecret=providers,sealing.existingSecret=sealing,mail.existingSecret=mail,' +
    'monitoring.serviceMonitor=true,monitoring.alerts=true,monitoring.dashboard=true,argocd.healthCheck=true,' +
    'apiserver.ingress.enabled=true,apiserver.ingress.host=cloud.example,apiserver.ingress.annotations.example=yes,' +
    'controlPlanes.enabled=true,controlPlanes.regions={eu-1},controlPlanes.hostClusters.region=eu-1,' +
    'brand.settings.name=Example',
  '-f',
  join(CHARTS, 'laptop/svccloud.yaml'),
]
const SHARD = [
  '--set',
  'controllers.shards[0].name=east,controllers.shards[0].zones={eu-1b,eu-1a},controllers.shards[0].replicas=3',
]
const TWO_HOSTS = ['--set', 'nodes[0].name=n1,nodes[0].host=host-1,nodes[1].name=n2,nodes[1].host=host-2']
const CEPH = ['--set', 'ceph.pool=guests,ceph.user=cloud,ceph.existingSecret=ceph-access']
const IN_NAMESPACE = ['-n', NAMESPACE]
const START_MILLISECONDS = 900_000 // the first time, the tools are built

interface Answer {
  readonly status: number
  readonly body: {
    readonly [field: string]: unknown
    readonly items?: readonly { readonly metadata: { readonly name: string } }[]
    readonly spec?: { readonly replicas?: number }
    readonly status?: { readonly token?: string }
  }
}

let cluster: RealCluster
let connections: Agent
let helm: Helm
let schemas: string

async function ask(
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE',
  path: string,
  { body, token = cluster.token }: { body?: object; token?: string } = {},
): Promise<Answer> {
  const response = await request(cluster.url + path, {
    method,
    dispatcher: connections,
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': method === 'PATCH' ? 'application/merge-patch+json' : 'application/json',
    },
    body: body ? JSON.stringify(body) : null,
  })
  const text = await response.body.text()
  return { status: response.statusCode, body: text.startsWith('{') ? (JSON.parse(text) as Answer['body']) : {} }
}

const names = async (path: string) => ((await ask('GET', path)).body.items ?? []).map(({ metadata }) => metadata.name)

beforeAll(async () => {
  for (const tool of ['helm', 'kubeconform'] as const) await buildTool(tool)
  cluster = await startRealCluster()
  connections = new Agent({ connect: { ca: cluster.ca } })
  helm = await openHelm(cluster.kubeconfigFile)
  schemas = await mkdtemp(join(tmpdir(), 'svccloud-schemas-'))
  await writeSchemas(async (path) => (await ask('GET', path)).body, schemas)
  await ask('POST', '/api/v1/namespaces', {
    body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } },
  })
  await ask('POST', '/api/v1/namespaces', {
    body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'argocd' } },
  })
}, START_MILLISECONDS)

afterAll(async () => {
  await helm?.close()
  await connections?.destroy()
  await cluster?.stop()
  if (schemas) await rm(schemas, { recursive: true, force: true })
})

describe('values', () => {
  it.each([
    { chart: CONTROL_PLANE, flags: DATABASE },
    { chart: CONTROL_PLANE, flags: [...DATABASE, ...EVERYTHING, ...SHARD] },
    { chart: NODE_AGENT, flags: TWO_HOSTS },
    {
      chart: NODE_AGENT,
      flags: [
        ...TWO_HOSTS,
        '--set',
        'monitoring.podMonitor=true,monitoring.existingSecret=agent-metrics,sharedDirectory=/mnt/cloud',
      ],
    },
    { chart: NODE_AGENT, flags: [...TWO_HOSTS, ...CEPH] },
    { chart: NODE_AGENT, flags: ['-f', join(CHARTS, 'laptop/node-agent.yaml')] },
  ])('$chart lints with $flags', async ({ chart, flags }) => {
    expect(await helm.must('lint', '--strict', chart, ...flags)).toContain('0 chart(s) failed')
  })

  it.each([CONTROL_PLANE, NODE_AGENT])('%s lints on its defaults without a warning', async (chart) => {
    const report = await helm.must('lint', '--strict', chart)
    expect(report).toContain('0 chart(s) failed')
    expect(report.split('\n').filter((line) => /WARN|ERROR/.test(line))).toEqual([])
  })

  it.each([
    {
      chart: CONTROL_PLANE,
      flags: [],
      complaint: 'database.existingSecret must name the Secret with the URL of the database',
    },
    { chart: CONTROL_PLANE, flags: [...DATABASE, '--set', 'apiserver.replicas=0'], complaint: '/apiserver/replicas' },
    { chart: CONTROL_PLANE, flags: [...DATABASE, '--set', 'apiserver.replica=2'], complaint: 'replica' },
    { chart: CONTROL_PLANE, flags: [...DATABASE, '--set', 'logLevel=loud'], complaint: '/logLevel' },
    {
      chart: CONTROL_PLANE,
      flags: [...DATABASE, '--set', 'apiserver.ingress.enabled=true'],
      complaint: '/apiserver/ingress',
    },
    { chart: CONTROL_PLANE, flags: [...DATABASE, '--set', 'catalog[0].kind=Server'], complaint: '/catalog/0' },
    {
      chart: CONTROL_PLANE,
      flags: [...DATABASE, '--set', 'controllers.shards[0].name=others,controllers.shards[0].zones={a}'],
      complaint: '/controllers/shards/0/name',
    },
    { chart: CONTROL_PLANE, flags: [...DATABASE, '--set', 'controllers.shards[0].name=a'], complaint: 'zones' },
    {
      chart: CONTROL_PLANE,
      flags: [...DATABASE, ...SHARD, '--set', 'controllers.shards[1].name=west,controllers.shards[1].zones={eu-1a}'],
      complaint: 'a zone is in two shards',
    },
    {
      chart: CONTROL_PLANE,
      flags: [...DATABASE, ...SHARD, '--set', 'controllers.shards[1].name=east,controllers.shards[1].zones={eu-2a}'],
      complaint: 'two shards have one name',
    },
    { chart: NODE_AGENT, flags: [], complaint: 'nodes must name at least one host' },
    { chart: NODE_AGENT, flags: ['--set', 'nodes[0].name=Bad_Name,nodes[0].host=h'], complaint: '/nodes/0/name' },
    { chart: NODE_AGENT, flags: [...TWO_HOSTS, '--set', 'port=80'], complaint: '/port' },
    { chart: NODE_AGENT, flags: [...TWO_HOSTS, '--set', 'image.digest=latest'], complaint: '/image/digest' },
    { chart: CONTROL_PLANE, flags: [...DATABASE, '--set', 'image.digest=sha256:1'], complaint: '/image/digest' },
    { chart: NODE_AGENT, flags: [...TWO_HOSTS, '--set', 'guestNetwork=bridge'], complaint: '/guestNetwork' },
    {
      chart: NODE_AGENT,
      flags: [...TWO_HOSTS, '--set', 'ceph.pool=guests'],
      complaint: 'ceph.pool needs ceph.existingSecret',
    },
  ])('$chart refuses $flags', async ({ chart, flags, complaint }) => {
    const { code, text } = await helm.run('template', 'release', chart, ...flags)
    expect(code).not.toBe(0)
    expect(text).toContain(complaint)
  })
})

describe('manifests', () => {
  it.each([
    { chart: CONTROL_PLANE, flags: [...DATABASE, ...EVERYTHING, ...SHARD] },
    { chart: NODE_AGENT, flags: TWO_HOSTS },
  ])('$chart names every image of the platform by its digest where that is given', async ({ chart, flags }) => {
    const digest = `sha256:${'0f'.repeat(32)}`
    const own = ['--set', `image.repository=registry.example/own,image.tag=mine,image.digest=${digest}`]
    const images = async (more: readonly string[]) => {
      const text = await helm.must('template', 'release', chart, ...IN_NAMESPACE, ...flags, ...more)
      return [...text.matchAll(/^\s*(?:- )?image: "?([^"\s]+)"?$/gm)].map(([, image]) => image)
    }
    const byDigest = await images(own)
    expect(byDigest.length).toBeGreaterThan(0)
    expect(new Set(byDigest)).toEqual(new Set([`registry.example/own@${digest}`]))
    expect(new Set(await images(own.with(1, 'image.repository=registry.example/own,image.tag=mine')))).toEqual(
      new Set(['registry.example/own:mine']),
    )
  })
  it.each([
    { chart: CONTROL_PLANE, flags: [...DATABASE, ...EVERYTHING, ...SHARD], skip: ['ServiceMonitor', 'PrometheusRule'] },
    {
      chart: NODE_AGENT,
      flags: [
        ...TWO_HOSTS,
        '--set',
        'kvmResource=devices.kubevirt.io/kvm,monitoring.podMonitor=true,sharedDirectory=/mnt/cloud',
        '--set',
        'monitoring.existingSecret=agent-metrics',
      ],
      skip: ['PodMonitor'],
    },
    {
      chart: NODE_AGENT,
      flags: [...TWO_HOSTS, '--set', 'guestNetwork=ovn,openvswitchDirectory=/var/run/ovs'],
      skip: [],
    },
    { chart: NODE_AGENT, flags: [...TWO_HOSTS, ...CEPH], skip: [] },
  ])('$chart renders what the API server has schemas for', async ({ chart, flags, skip }) => {
    const manifests = await helm.must('template', 'release', chart, ...IN_NAMESPACE, ...flags)
    const { code, text } = await kubeconform(withoutLogs(manifests), { schemas, skip })
    expect(text).toMatch(/Invalid: 0, Errors: 0/)
    expect(code).toBe(0)
  })

  it('a mistake is found', async () => {
    const { text } = await kubeconform('apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {portz: []}\n', {
      schemas,
    })
    expect(text).toMatch(/Invalid: 1/)
  })

  it('controllers count addresses as confirmed only where no mail can be sent', async () => {
    const controllers = async (...flags: string[]) =>
      helm.must('template', 'release', CONTROL_PLANE, ...DATABASE, ...flags, '-s', 'templates/controllers.yaml')
    expect(await controllers()).toMatch(/name: SVCCLOUD_ADDRESSES_CONFIRMED\n\s+value: "true"/)
    expect(await controllers('--set', 'mail.existingSecret=mail')).not.toContain('SVCCLOUD_ADDRESSES_CONFIRMED')
  })

  it('agents reach a Ceph cluster as the client that is named, by the files of its Secret', async () => {
    const manifests = await helm.must('template', 'release', NODE_AGENT, ...IN_NAMESPACE, ...TWO_HOSTS, ...CEPH)
    const environment = Object.fromEntries(
      [...manifests.matchAll(/name: (SVCCLOUD_CEPH_\w+)\n\s+value: "?([^"\n]+)/g)].map(([, name, value]) => [
        name,
        value,
      ]),
    )
    expect(environment).toEqual({
      SVCCLOUD_CEPH_POOL: 'guests',
      SVCCLOUD_CEPH_USER: 'cloud',
      SVCCLOUD_CEPH_CONFIGURATION: '/etc/svccloud-ceph/ceph.conf',
      SVCCLOUD_CEPH_KEYRING: '/etc/svccloud-ceph/keyring',
    })
    expect(manifests).toContain('{ name: ceph, mountPath: /etc/svccloud-ceph, readOnly: true }')
    expect(manifests).toMatch(/name: ceph\n\s+secret: \{ secretName: ceph-access \}/)
  })

  it('every zone has exactly one shard, with a leader that somebody watches', async () => {
    const manifests = await helm.must(
      'template',
      'release',
      CONTROL_PLANE,
      ...IN_NAMESPACE,
      ...DATABASE,
      ...SHARD,
      '--set',
      'monitoring.alerts=true',
      '-s',
      'templates/controllers.yaml',
      '-s',
      'templates/monitoring.yaml',
    )
    const shards = [...manifests.matchAll(/name: SVCCLOUD_SHARD\n\s+value: "(.+)"/g)].map(([, shard]) =>
      parseShard(shard),
    )
    for (const zone of ['eu-1a', 'eu-1b', 'eu-2a'])
      expect(
        shards.filter(({ ownsZone }) => ownsZone(zone)),
        zone,
      ).toHaveLength(1)
    expect([...manifests.matchAll(/critical, lease: (\S+) }/g)].map(([, lease]) => lease)).toEqual(
      shards.map(({ name }) => name),
    )
  })

  it.each([
    {
      guestNetwork: 'outbound',
      rights: { runAsNonRoot: true, runAsUser: 65_532, privileged: undefined, capabilities: { drop: ['ALL'] } },
      directory: undefined,
    },
    {
      guestNetwork: 'isolated',
      rights: { runAsNonRoot: true, runAsUser: 65_532, privileged: undefined, capabilities: { drop: ['ALL'] } },
      directory: undefined,
    },
    {
      guestNetwork: 'ovn',
      rights: { runAsNonRoot: undefined, runAsUser: 0, privileged: true, capabilities: undefined },
      directory: '/run/openvswitch',
    },
  ])(
    'agents have the rights that a guest network of kind $guestNetwork takes',
    async ({ guestNetwork, rights, directory }) => {
      const [agents] = parseAllDocuments(
        withoutLogs(
          await helm.must(
            'template',
            'release',
            NODE_AGENT,
            ...IN_NAMESPACE,
            ...TWO_HOSTS,
            '--set',
            `guestNetwork=${guestNetwork}`,
            '-s',
            'templates/agents.yaml',
          ),
        ),
      )
        .map((document) => document.toJS() as { kind: string; spec: { template: { spec: PodSpec } } } | null)
        .filter((object) => object?.kind === 'DaemonSet')
      const pod = agents?.spec.template.spec
      const { runAsNonRoot, runAsUser, privileged, capabilities } = pod?.containers[0]?.securityContext ?? {}
      expect({ runAsNonRoot, runAsUser, privileged, capabilities }).toEqual(rights)
      expect(pod?.volumes.find(({ name }) => name === 'openvswitch')?.hostPath?.path).toBe(directory)
      expect(pod?.containers[0]?.env).toContainEqual({ name: 'SVCCLOUD_GUEST_NETWORK', value: guestNetwork })
    },
  )

  it.each([
    { chart: CONTROL_PLANE, flags: DATABASE, kinds: ['Deployment', 'Deployment', 'Job'], host: [undefined] },
    { chart: NODE_AGENT, flags: TWO_HOSTS, kinds: ['DaemonSet', 'DaemonSet'], host: ['host-1', 'host-2'] },
  ])(
    '$chart schedules all its pods as `pods` says, agents on their host only',
    async ({ chart, flags, kinds, host }) => {
      const pods = {
        nodeSelector: { disk: 'fast', ...(chart === NODE_AGENT && { 'kubernetes.io/hostname': 'other' }) },
        tolerations: [{ key: 'guests', operator: 'Exists' }],
        affinity: { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [] } },
        priorityClassName: 'system-node-critical',
      }
      const annotations = { 'example.com/team': 'cloud' }
      const variable = { name: 'NODE_OPTIONS', value: '--max-old-space-size=512' }
      const values = { ...pods, annotations, extraEnv: [variable] }
      const workloads = parseAllDocuments(
        await helm.must('template', 'release', chart, ...flags, '--set-json', `pods=${JSON.stringify(values)}`),
      )
        .map((document) => document.toJS() as Workload | null)
        .filter((object) => kinds.includes(object?.kind ?? ''))
      expect(workloads.map((object) => object?.kind)).toEqual(kinds)
      for (const [index, object] of workloads.entries()) {
        const hostname = host[index % host.length]
        expect(object?.spec.template).toMatchObject({
          metadata: { annotations },
          spec: { ...pods, nodeSelector: { disk: 'fast', ...(hostname && { 'kubernetes.io/hostname': hostname }) } },
        })
        expect(object?.spec.template.spec.containers[0]?.env).toContainEqual(variable)
      }
    },
  )

  it('the values of docs/cluster.md make a control plane with their catalog', async () => {
    const guide = await readFile(join(CHARTS, '../docs/cluster.md'), 'utf8')
    const file = join(schemas, 'values.yaml')
    await writeFile(file, /^# values\.yaml\n(.*?)^```$/ms.exec(guide)?.[1] ?? '')
    const manifests = await helm.must('template', 'svccloud', CONTROL_PLANE, ...IN_NAMESPACE, '-f', file)
    for (const kind of ['Region', 'Zone', 'Plan', 'Template', 'Node']) expect(manifests).toContain(`kind: ${kind}\n`)
    expect(manifests).toContain('image: registry.example/svccloud/svccloud:')
  })

  it.each([
    { chart: CONTROL_PLANE, flags: DATABASE, steps: ['There is no catalog', 'port-forward', 'No mail is sent'] },
    { chart: CONTROL_PLANE, flags: [...DATABASE, ...EVERYTHING], steps: ['signup --url https://cloud.example'] },
    { chart: NODE_AGENT, flags: TWO_HOSTS, steps: ['kubectl wait nodes.svccloud.dev n1 n2'] },
  ])('$chart says what to do next with $flags', async ({ chart, flags, steps }) => {
    const text = await helm.must('install', 'notes', chart, ...IN_NAMESPACE, ...flags, '--dry-run=client')
    const notes = text.slice(text.indexOf('NOTES:'))
    for (const step of steps) expect(notes).toContain(step)
  })

  it('the account roles are those of the role table', async () => {
    const manifests = await helm.must(
      'template',
      'release',
      CONTROL_PLANE,
      ...IN_NAMESPACE,
      ...DATABASE,
      '-s',
      'templates/account-roles.yaml',
    )
    const roles = parseAllDocuments(withoutLogs(manifests)).map(
      (document) =>
        document.toJS() as { metadata: { name: string }; rules: { resources: string[]; verbs: string[] }[] },
    )
    const mayChange = Object.fromEntries(
      roles.map(({ metadata, rules }) => [
        metadata.name.split(':').at(-1),
        rules.some(({ verbs }) => verbs.includes('create')),
      ]),
    )
    const mayOperate = Object.fromEntries(
      (Object.keys(ROLE_PERMISSIONS) as Role[]).map((role) => [role, ROLE_PERMISSIONS[role].includes('operate')]),
    )
    expect(mayChange).toEqual({ ...mayOperate, catalog: false })
  })
})

interface Workload {
  readonly kind: string
  readonly spec: { readonly template: { readonly metadata: object; readonly spec: PodSpec } }
}

interface PodSpec {
  readonly containers: readonly {
    readonly env: readonly object[]
    readonly securityContext: Readonly<Record<string, unknown>>
  }[]
  readonly volumes: readonly { readonly name: string; readonly hostPath?: { readonly path: string } }[]
}

/** helm says on its error stream that it follows the link to the kinds. */
const withoutLogs = (text: string) => text.replace(/^level=.*$/gm, '')

describe('the laptop', () => {
  it('has a Tiltfile that parses', async () => {
    await promisify(execFile)(await buildTool('buildifier'), [
      '-mode=check',
      '-type=default',
      join(CHARTS, '../Tiltfile'),
    ]) // throws when it does not
  })

  it('has values that fit together: every host of the agents is a node of the catalog', async () => {
    const manifests = parseAllDocuments(
      withoutLogs(
        await helm.must(
          'template',
          'svccloud',
          CONTROL_PLANE,
          ...IN_NAMESPACE,
          '-f',
          join(CHARTS, 'laptop/svccloud.yaml'),
          '-s',
          'templates/controllers.yaml',
        ),
      ),
    )
    const catalog =
      manifests.map((document) => document.toJS() as { data?: Record<string, string> }).find(({ data }) => data)
        ?.data?.['catalog.yaml'] ?? ''
    const nodes = parseAllDocuments(catalog)
      .map((document) => document.toJS() as { kind: string; metadata: { name: string } } | null)
      .filter((object) => object?.kind === 'Node')
      .map((object) => object?.metadata.name)
    const agents = await helm.must(
      'template',
      'agents',
      NODE_AGENT,
      ...IN_NAMESPACE,
      '-f',
      join(CHARTS, 'laptop/node-agent.yaml'),
      '-s',
      'templates/agents.yaml',
    )
    expect([...agents.matchAll(/name: SVCCLOUD_NODE_NAME\n\s+value: (\S+)/g)].map(([, name]) => name)).toEqual(nodes)
  })
})

const RELEASE = 'cloud'
const deployment = (name: string) => `/apis/apps/v1/namespaces/${NAMESPACE}/deployments/${RELEASE}-${name}`
const job = `/apis/batch/v1/namespaces/${NAMESPACE}/jobs/${RELEASE}-migrations`

/** There is no kubelet here: says of the migrations' Job what the Job controller would say once its pod has ended well.
 */
async function finishMigrations(): Promise<void> {
  await eventually('the migrations to be asked for', async () => (await ask('GET', job)).status === 200)
  const now = new Date().toISOString().replace(/\.\d+/, '')
  const condition = (type: string) => ({
    type,
    status: 'True',
    reason: 'CompletionsReached',
    message: '',
    lastProbeTime: now,
    lastTransitionTime: now,
  })
  const status = {
    startTime: now,
    completionTime: now,
    succeeded: 1,
    uncountedTerminatedPods: {},
    conditions: [condition('SuccessCriteriaMet'), condition('Complete')],
  }
  expect(await ask('PATCH', `${job}/status`, { body: { status } })).toMatchObject({ status: 200 })
}

describe('the control plane', () => {
  it('installs, once its migrations have run', async () => {
    const installing = helm.must('install', RELEASE, CONTROL_PLANE, ...IN_NAMESPACE, ...DATABASE, '--timeout', '90s')
    await finishMigrations()
    expect(await installing).toContain('STATUS: deployed')
    expect((await ask('GET', deployment('apiserver'))).body.spec?.replicas).toBe(2)
    expect(await names(`/api/v1/namespaces/${NAMESPACE}/services`)).toEqual([
      `${RELEASE}-apiserver`,
      `${RELEASE}-controllers`,
      `${RELEASE}-operator`,
      `${RELEASE}-webhook`,
    ])
    expect((await ask('GET', job)).status).toBe(404)
    await eventually(
      'the kinds to be served',
      async () => (await ask('GET', '/apis/svccloud.dev/v1alpha1/servers')).status === 200,
    )
  })

  const authority = async () => {
    const { webhooks } = (
      await ask('GET', `/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/${NAMESPACE}-${RELEASE}`)
    ).body as { webhooks?: { clientConfig: { caBundle: string } }[] } // as its kind says
    return webhooks?.[0]?.clientConfig.caBundle
  }

  it('upgrades', async () => {
    const before = await authority()
    const upgrading = helm.must(
      'upgrade',
      RELEASE,
      CONTROL_PLANE,
      ...IN_NAMESPACE,
      ...DATABASE,
      '--set',
      'apiserver.replicas=3,accountRoles.create=false',
      '--timeout',
      '90s',
    )
    await finishMigrations()
    expect(await upgrading).toContain('REVISION: 2')
    expect(await authority()).toBe(before)
    expect((await ask('GET', deployment('apiserver'))).body.spec?.replicas).toBe(3)
    expect(
      (await names('/apis/rbac.authorization.k8s.io/v1/clusterroles')).filter((name) => name.startsWith('svccloud:')),
    ).toEqual([])
  })

  it('parts the controllers by zones, and puts them together again', async () => {
    const controllers = async () =>
      (await names(`/apis/apps/v1/namespaces/${NAMESPACE}/deployments`)).filter((name) =>
        name.startsWith(`${RELEASE}-controllers`),
      )
    const upgrade = async (...flags: string[]) => {
      const upgrading = helm.must(
        'upgrade',
        RELEASE,
        CONTROL_PLANE,
        ...IN_NAMESPACE,
        ...DATABASE,
        '--set',
        'apiserver.replicas=3,accountRoles.create=false',
        ...flags,
        '--timeout',
        '90s',
      )
      await finishMigrations()
      await upgrading
    }
    await upgrade(...SHARD)
    expect(await controllers()).toEqual([`${RELEASE}-controllers`, `${RELEASE}-controllers-east`])
    expect((await ask('GET', deployment('controllers-east'))).body.spec?.replicas).toBe(3)
    await upgrade()
    expect(await controllers()).toEqual([`${RELEASE}-controllers`])
  })

  it('changes nothing when the migrations fail', async () => {
    const { code, text } = await helm.run(
      'upgrade',
      RELEASE,
      CONTROL_PLANE,
      ...IN_NAMESPACE,
      ...DATABASE,
      '--set',
      'apiserver.replicas=9',
      '--timeout',
      '3s',
    )
    expect(code, text).not.toBe(0)
    expect((await ask('GET', deployment('apiserver'))).body.spec?.replicas).toBe(3)
  })

  it('rolls back', async () => {
    await helm.must('rollback', RELEASE, '1', ...IN_NAMESPACE, '--timeout', '30s')
    expect((await ask('GET', deployment('apiserver'))).body.spec?.replicas).toBe(2)
    expect(
      (await names('/apis/rbac.authorization.k8s.io/v1/clusterroles')).filter((name) => name.startsWith('svccloud:')),
    ).toHaveLength(5)
  })

  it('goes, and leaves the kinds with their objects', async () => {
    const region = {
      apiVersion: 'svccloud.dev/v1alpha1',
      kind: 'Region',
      metadata: { name: 'kept' },
      spec: { displayName: 'Kept', country: 'DE' },
    }
    expect(await ask('POST', '/apis/svccloud.dev/v1alpha1/regions', { body: region })).toMatchObject({ status: 201 })
    expect(await names('/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations')).toEqual([
      `${NAMESPACE}-${RELEASE}`,
    ])
    await helm.must('uninstall', RELEASE, ...IN_NAMESPACE, '--timeout', '30s')
    await eventually('everything else to go', async () => (await ask('GET', deployment('apiserver'))).status === 404)
    expect(
      (await names('/apis/rbac.authorization.k8s.io/v1/clusterroles')).filter((name) =>
        name.startsWith(`${NAMESPACE}-${RELEASE}`),
      ),
    ).toEqual([])
    expect(await names('/apis/svccloud.dev/v1alpha1/regions')).toEqual(['kept'])
  })
})

describe('the agents of two hosts', () => {
  const agents = 'agents'
  const tokenOf = async (node: string) => {
    const account = `/api/v1/namespaces/${NAMESPACE}/serviceaccounts/${agents}-${node}/token`
    const answer = await ask('POST', account, {
      body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} },
    })
    expect(answer.status).toBe(201)
    return answer.body.status?.token ?? ''
  }

  it('install with a DaemonSet and rights for each', async () => {
    await helm.must('install', agents, NODE_AGENT, ...IN_NAMESPACE, ...TWO_HOSTS, '--timeout', '30s')
    expect(await names(`/apis/apps/v1/namespaces/${NAMESPACE}/daemonsets`)).toEqual([`${agents}-n1`, `${agents}-n2`])
    expect(await names('/apis/rbac.authorization.k8s.io/v1/namespaces/node-n1/roles')).toEqual(['svccloud-node-agent'])
  })

  it('each reaches its own node and nothing else', async () => {
    const token = await tokenOf('n1')
    const instances = (namespace: string) => `/apis/svccloud.dev/v1alpha1/namespaces/${namespace}/instances`
    const status = async (method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, body?: object) =>
      (await ask(method, path, { token, ...(body ? { body } : {}) })).status
    await eventually('the rights to count', async () => (await status('GET', instances('node-n1'))) === 200)
    const allowed = [
      ['GET', '/api/v1/namespaces/node-n1', 200],
      ['GET', '/api/v1/namespaces/node-n1/secrets/agent-access', 404],
      ['PATCH', `${instances('node-n1')}/missing/status`, 404],
    ] as const
    for (const [method, path, expected] of allowed)
      expect
        .soft([method, path, await status(method, path, method === 'PATCH' ? {} : undefined)])
        .toEqual([method, path, expected])
    const account = 'acc-1'
    await ask('POST', '/api/v1/namespaces', {
      body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: account } },
    })
    const refused = [
      ['GET', instances('node-n2')],
      ['GET', '/apis/svccloud.dev/v1alpha1/instances'],
      ['PATCH', `${instances('node-n2')}/x`],
      ['PATCH', `${instances('node-n2')}/x/status`],
      ['POST', instances('node-n1')],
      ['DELETE', `${instances('node-n1')}/x`],
      ['GET', '/api/v1/namespaces/node-n2'],
      ['GET', '/api/v1/namespaces'],
      ['GET', '/api/v1/namespaces/node-n2/secrets/agent-access'],
      ['GET', '/api/v1/namespaces/node-n1/secrets'],
      ['GET', `/api/v1/namespaces/${NAMESPACE}/secrets/svccloud-database`],
      ['GET', `/api/v1/namespaces/${account}/secrets`],
      ['GET', `/apis/svccloud.dev/v1alpha1/namespaces/${account}/servers`],
      ['PATCH', `/apis/svccloud.dev/v1alpha1/namespaces/${account}/servers/x`],
      ['GET', '/apis/svccloud.dev/v1alpha1/nodes'],
      ['PATCH', '/apis/coordination.k8s.io/v1/namespaces/node-n2/leases/heartbeat'],
      ['POST', `/api/v1/namespaces/${NAMESPACE}/serviceaccounts/${agents}-n2/token`],
    ] as const
    for (const [method, path] of refused)
      expect
        .soft([method, path, await status(method, path, method === 'PATCH' || method === 'POST' ? {} : undefined)])
        .toEqual([method, path, 403])
  })

  it('a host that is taken out loses its rights, its namespace stays', async () => {
    const token = await tokenOf('n2')
    await helm.must(
      'upgrade',
      agents,
      NODE_AGENT,
      ...IN_NAMESPACE,
      '--set',
      'nodes[0].name=n1,nodes[0].host=host-1',
      '--timeout',
      '30s',
    )
    await eventually('the rights to be gone', async () =>
      [401, 403].includes(
        (await ask('GET', '/apis/svccloud.dev/v1alpha1/namespaces/node-n2/instances', { token })).status,
      ),
    )
    expect((await ask('GET', '/api/v1/namespaces/node-n2')).status).toBe(200)
    expect(await names(`/apis/apps/v1/namespaces/${NAMESPACE}/daemonsets`)).toEqual([`${agents}-n1`])
  })

  it('go', async () => {
    await helm.must('uninstall', agents, ...IN_NAMESPACE, '--timeout', '30s')
    await eventually(
      'the agents to go',
      async () => (await names(`/apis/apps/v1/namespaces/${NAMESPACE}/daemonsets`)).length === 0,
    )
    expect((await ask('GET', '/api/v1/namespaces/node-n1')).status).toBe(200)
  })
})
