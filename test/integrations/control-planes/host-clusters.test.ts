/** What the platform learns of host clusters, and how it knows those that it has made. */
import { expect, test } from 'vitest'
import { readHostClusters } from '../../../integrations/control-planes/host-clusters.ts'
import { type MadeHost, openMadeHosts } from '../../../integrations/control-planes/made-hosts.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { silentLog } from '../../../kit/sys/log.ts'
import { MANIFESTS, settingsFrom } from '../../controllers/nouns/kubernetes-host/host-cluster.ts'

test('manifests are applied to the namespace of the host process, and are distinguished', async () => {
  const settings = await settingsFrom({ region: 'eu-1', manifests: MANIFESTS })
  expect(settings).toMatchObject({
    region: 'eu-1',
    publicIpv4: true,
    service: { namespace: 'svccloud', name: 'svccloud-control-planes' },
  })
  expect(settings?.manifests.map(({ type, document }) => [type.plural, document.metadata.namespace])).toEqual([
    ['configmaps', 'svccloud'],
    ['clusterroles', undefined],
    ['services', 'svccloud'],
    ['statefulsets', 'svccloud'],
  ])
  const other = await settingsFrom({ region: 'eu-1', manifests: MANIFESTS.replace('replicas: 1', 'replicas: 2') })
  expect(other?.digest).not.toBe(settings?.digest)
  expect(await readHostClusters({})).toBeUndefined()
})

test.each([
  ['no region', { manifests: MANIFESTS }, 'region'],
  [
    'no door',
    { region: 'eu-1', manifests: MANIFESTS.replace('kind: Service\n', 'kind: ServiceAccount\n') },
    'one Service',
  ],
  ['a kind that is unknown', { region: 'eu-1', manifests: MANIFESTS.replace('StatefulSet', 'CronJob') }, 'CronJob'],
])('settings with %s are refused', async (_, content, why) => {
  await expect(settingsFrom(content)).rejects.toThrow(why)
})

test('one that is known stays the same until it changes, also when they cannot be read', async () => {
  const host = (region: string, token: string): MadeHost => ({
    region,
    token,
    url: 'https://192.0.2.1',
    authority: '',
    serverName: 'host',
  })
  let answer: () => Promise<readonly MadeHost[]> = async () => [host('eu-1', 'a'), host('eu-2', 'b')]
  const made = openMadeHosts({ read: () => answer(), clock: systemClock, log: silentLog })
  expect(made.hosts()).toEqual([])
  await made.read()
  const [first, second] = made.hosts()
  expect([first, second].map((each) => each?.regions)).toEqual([['eu-1'], ['eu-2']])
  answer = async () => [host('eu-1', 'a'), host('eu-2', 'c')]
  await made.read()
  expect(made.hosts()[0]).toBe(first)
  expect(made.hosts()[1]).not.toBe(second)
  answer = () => Promise.reject(new Error('away'))
  await expect(made.read()).rejects.toThrow('away')
  expect(made.hosts()).toHaveLength(2)
})
