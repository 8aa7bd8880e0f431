/** Which programs `npm run build:kubernetes` has made, and in which order. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { missingPrograms, missingText, purposesOf } from '../../../integrations/control-planes/programs.ts'
import { KUBERNETES_RELEASES } from '../../../domain/kubernetes-cluster/versions.ts'
import { findKubernetes, kubernetesObstacle, missingKubernetes } from '../../../hosting/processes/programs.ts'
import { toolsFolder } from '../../../kit/sys/tools-folder.ts'
import { releasedFileOf, toolPath } from '../../../tools/cluster/build.ts'
import { buildOrder, parseBuild } from '../../../tools/cluster/build-kubernetes.ts'

let folder: string
beforeEach(async () => void (folder = await mkdtemp(join(tmpdir(), 'build-kubernetes-'))))
afterEach(() => rm(folder, { recursive: true }))

const toolsOf = (...releases: Parameters<typeof buildOrder>[0]) => buildOrder(releases).flatMap(({ tools }) => tools)
async function put(...paths: readonly string[]): Promise<void> {
  for (const path of paths) {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await writeFile(join(folder, path), '', { mode: 0o755 })
  }
}
const pathsFor = (release: (typeof KUBERNETES_RELEASES)[number], purpose: number) =>
  purposesOf(release)[purpose]?.programs.map(({ path }) => path) ?? []

test('one minor version by default, and others when they are asked for', () => {
  expect(parseBuild([])?.releases).toEqual(['1.36.3'])
  expect(parseBuild(['--minor', '1.35'])?.releases).toEqual(['1.35.4'])
  expect(parseBuild(['--minor', '1.35', '--minor', '1.36'])?.releases).toEqual(['1.36.3', '1.35.4'])
})

test('what cannot be meant is refused', () => {
  for (const words of [['--minor', '1.3'], ['--from', 'mirror'], ['--pin'], ['etcd'], ['--minro', '1.35']])
    expect(parseBuild(words), words.join(' ')).toBeUndefined()
  expect(parseBuild(['--from', 'https://dl.k8s.io', '--pin'])).toMatchObject({
    mirror: 'https://dl.k8s.io',
    isPin: true,
  })
})

test('what a control plane needs is built first, and nothing twice', () => {
  expect(toolsOf('1.36.3').slice(0, 5)).toEqual([
    'etcd',
    'etcdutl',
    'kube-apiserver',
    'kube-controller-manager',
    'kube-scheduler',
  ])
  expect(toolsOf('1.36.3').filter((tool) => tool.endsWith('-1.35'))).toEqual([])
  const both = toolsOf('1.36.3', '1.35.4')
  expect(new Set(both).size).toBe(both.length)
  expect(both.slice(toolsOf('1.36.3').length)).toEqual(
    ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'kubelet', 'kube-proxy'].map(
      (name) => `${name}-1.35`,
    ),
  )
})

test.each(KUBERNETES_RELEASES)('programs of %s are looked for where they are built', (release) => {
  for (const { programs } of purposesOf(release))
    for (const { tool, path } of programs) expect(toolPath(tool), tool).toBe(join(toolsFolder(), path))
})

test('of programs that no project releases as files there is no file', () => {
  expect(releasedFileOf('kube-apiserver-1.35', 'x64')?.path).toBe('v1.35.4/bin/linux/amd64/kube-apiserver')
  expect(releasedFileOf('etcdutl', 'x64')?.member).toBe('etcd-v3.6.9-linux-amd64/etcdutl')
  for (const tool of ['coredns', 'konnectivity-server', 'csi-provisioner', 'e2e.test'] as const)
    expect(releasedFileOf(tool, 'x64'), tool).toBeUndefined()
})

test('what is missing is named in the order of need, with who does what and for how long', async () => {
  await put(...pathsFor('1.36.3', 0).filter((path) => !path.endsWith('kube-scheduler')))
  const [first, ...others] = await missingPrograms(folder)
  expect(first).toMatchObject({ purpose: 'Kubernetes clusters', tools: ['kube-scheduler'] })
  expect(others.map(({ purpose }) => purpose)).toEqual([
    'nodes of clusters',
    'volumes of clusters',
    'dev cluster volumes',
  ])
  expect(await findKubernetes(folder)).toBeUndefined()
  expect(await kubernetesObstacle(folder)).toMatch(
    /^kube-scheduler not built: the operator runs npm run build:kubernetes \(about \d+ minutes? with \d+ .*\), and /,
  )
  await put('v1.36.3/kube-scheduler')
  expect((await findKubernetes(folder))?.releases).toHaveLength(1)
  expect(await kubernetesObstacle(folder)).toBeUndefined()
  expect((await missingKubernetes(folder)).map(([name]) => name)).not.toContain('Kubernetes clusters')
})

test('with everything of one minor version nothing is missing, whichever that is', async () => {
  for (const release of KUBERNETES_RELEASES) {
    await put(...[0, 1, 2, 3].flatMap((purpose) => pathsFor(release, purpose)))
    expect(await missingPrograms(folder)).toEqual([])
    await rm(folder, { recursive: true })
  }
  await mkdir(folder)
  // With the control plane of the older one alone, it is the rest of that which is missing.
  await put(...pathsFor('1.35.4', 0))
  expect((await missingPrograms(folder))[0]).toMatchObject({ purpose: 'nodes of clusters' })
  expect((await missingPrograms(folder))[0]?.tools).toContain('kubelet-1.35')
})

test('the time is that of all processors together, and never nothing', () => {
  const missing = { purpose: 'x', tools: ['etcd'], seconds: 600 }
  expect(missingText(missing, 2)).toContain('about 5 minutes with 2 free processors')
  expect(missingText({ ...missing, seconds: 3 }, 8)).toContain('about 1 minute with 8 free processors')
})
