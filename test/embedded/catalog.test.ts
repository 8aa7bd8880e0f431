import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { catalogFor, inOrder, nodesLeftOut, planNodes } from '../../embedded/catalog.ts'
import { parseNodes } from '../../embedded/options.ts'
import { zoneAddresses } from '../../embedded/ovn/address-plan.ts'
import { Zone } from '../../resources/catalog/index.ts'
import { Node } from '../../resources/node/index.ts'
import { PublicPool } from '../../resources/public-pool/index.ts'
import { RESOURCES } from '../../resources/index.ts'

interface CatalogObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string }
  readonly spec: Readonly<Record<string, unknown>>
}

const objectsOf = (yaml: string): readonly CatalogObject[] =>
  parseAllDocuments(yaml).map((document) => document.toJS() as CatalogObject) // checked below

it('offers only what the kinds allow', async () => {
  const objects = objectsOf(await catalogFor(parseNodes('eu-1a=2,eu-1b=1')))
  for (const { apiVersion, kind, metadata, spec } of objects) {
    const resource = RESOURCES.find((candidate) => candidate.kind === kind)
    expect(`${resource?.group}/${resource?.version}`).toBe(apiVersion)
    expect(resource?.spec.safeParse(spec), `${kind} ${metadata.name}`).toMatchObject({ success: true })
  }
  const names = objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`)
  expect(new Set(names).size).toBe(names.length)
})

it('names the way outside of each zone and the pools of its addresses, where there is a network', async () => {
  const zone = (name: string) => ({
    publicNetwork: {
      physicalNetwork: 'outside',
      addresses: ['198.19.0.2/24'],
      gateways: ['198.19.0.1'],
      proxy: 'socks5://127.0.0.1:1080',
    },
    pools: zoneAddresses(0).pools.map(({ name: use, ...pool }) => ({ name: use, spec: { zone: name, ...pool } })),
  })
  const objects = objectsOf(await catalogFor(parseNodes('here=1'), undefined, { zone }))
  const specsOf = (resource: (typeof RESOURCES)[number]) =>
    objects.filter(({ kind }) => kind === resource.kind).map(({ spec }) => resource.spec.parse(spec))
  expect(specsOf(Zone)).toMatchObject([{ publicNetwork: { proxy: 'socks5://127.0.0.1:1080' } }])
  expect(specsOf(PublicPool)).toMatchObject(
    ['server_ipv4', 'floating_ipv4', 'edge', 'server_ipv6_prefix'].map((use) => ({ zone: 'here', use })),
  )
})

it('has the zones and nodes that were asked for, in the region that it offers', async () => {
  const objects = objectsOf(await catalogFor(parseNodes('here=1,there=2')))
  const named = (wanted: string) => objects.filter(({ kind }) => kind === wanted)
  const regions = named('Region').map(({ metadata }) => metadata.name)
  expect(named('Zone').map(({ metadata, spec }) => [metadata.name, spec['region']])).toEqual([
    ['here', regions[0]],
    ['there', regions[0]],
  ])
  expect(named('Node').map(({ metadata, spec }) => [metadata.name, spec['zone']])).toEqual([
    ['here-1', 'here'],
    ['there-1', 'there'],
    ['there-2', 'there'],
  ])
})

it('names the management controller of every node, and has the credentials', async () => {
  const objects = objectsOf(
    await catalogFor(parseNodes('here=2'), {
      url: 'https://127.0.0.1:1',
      username: 'u',
      password: 'p',
      authority: 'a',
    }),
  )
  const [secret] = objects.filter(({ kind }) => kind === 'Secret')
  expect(secret).toMatchObject({ stringData: { username: 'u', password: 'p', 'ca.crt': 'a' } })
  const nodes = objects.filter(({ kind }) => kind === 'Node')
  expect(nodes.map(({ spec }) => spec['bmc'])).toEqual(
    ['here-1', 'here-2'].map((name) => ({
      address: `https://127.0.0.1:1/redfish/v1/Systems/${name}`,
      protocol: 'redfish',
      secretName: secret?.metadata.name,
    })),
  )
  for (const { spec } of nodes)
    expect(RESOURCES.find(({ kind }) => kind === 'Node')?.spec.safeParse(spec)).toMatchObject({ success: true })
})

it('has a plan that the smallest template fits', async () => {
  const objects = objectsOf(await catalogFor(parseNodes('here=1')))
  const specOf = (kind: string, name: string) =>
    objects.find((object) => object.kind === kind && object.metadata.name === name)?.spec ?? {}
  const [plan, template] = [specOf('Plan', 'tiny'), specOf('Template', 'tiny-linux')]
  expect(Number(plan['memoryMebibytes'])).toBeGreaterThanOrEqual(Number(template['minMemoryMebibytes']))
  expect(Number(plan['storageGibibytes'])).toBeGreaterThanOrEqual(Number(template['minStorageGibibytes']))
})

it('gives nodes names that stay when a zone grows', () => {
  expect(planNodes(parseNodes('a=1'))).toEqual([{ name: 'a-1', zone: 'a' }])
  expect(planNodes(parseNodes('a=2,b=1'))).toEqual([
    { name: 'a-1', zone: 'a' },
    { name: 'a-2', zone: 'a' },
    { name: 'b-1', zone: 'b' },
  ])
})

it('finds the nodes of earlier starts, and keeps each in its place', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-nodes-'))
  try {
    for (const name of ['eu-1a-1', 'eu-1a-2', 'eu-1a-10', 'eu-1b-1', 'notes']) await mkdir(join(folder, name))
    const zones = parseNodes('eu-1a=1,eu-1c=1')
    const leftOut = await nodesLeftOut(folder, zones)
    expect(leftOut.map(({ name }) => name).toSorted()).toEqual(['eu-1a-10', 'eu-1a-2', 'eu-1b-1'])
    expect(inOrder(zones, [...planNodes(zones), ...leftOut])).toEqual([
      { name: 'eu-1a-1', zone: 'eu-1a' },
      { name: 'eu-1a-2', zone: 'eu-1a' },
      { name: 'eu-1a-10', zone: 'eu-1a' },
      { name: 'eu-1c-1', zone: 'eu-1c' },
      { name: 'eu-1b-1', zone: 'eu-1b' },
    ])
  } finally {
    await rm(folder, { recursive: true })
  }
})

it('keeps the zones of nodes that are left out, with the network of this start', async () => {
  const zone = (name: string) => ({ publicNetwork: { physicalNetwork: name }, pools: [] })
  const objects = objectsOf(await catalogFor(parseNodes('here=1'), undefined, { zone }, ['there', 'there']))
  expect(
    objects.filter(({ kind }) => kind === 'Zone').map(({ metadata, spec }) => [metadata.name, spec]),
  ).toMatchObject([
    ['here', { publicNetwork: { physicalNetwork: 'here' } }],
    ['there', { publicNetwork: { physicalNetwork: 'there' } }],
  ])
  expect(objects.filter(({ kind }) => kind === 'Node').map(({ metadata }) => metadata.name)).toEqual(['here-1'])
})

it('leaves to the host what it keeps for itself', async () => {
  const [node] = objectsOf(await catalogFor(parseNodes('here=1'))).filter(({ kind }) => kind === 'Node')
  expect(Node.spec.parse(node?.spec)).toMatchObject({ reservedMemoryMebibytes: 2_048 })
})

it('is explained to people', async () => {
  const readme = await readFile(join(import.meta.dirname, '../../README.md'), 'utf8')
  for (const name of ['--zone eu-1a', '--plan tiny', '--template tiny-linux']) expect(readme).toContain(name)
})
