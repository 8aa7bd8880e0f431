/** kubectl and the REST API as equal interfaces, used by a person whose role is bound in the namespace of one account.
 *  The same scenario runs on the embedded Kubernetes API and on a real one. */
import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { toolPath } from '../../tools/cluster/build.ts'
import { eventually, until } from '../eventually.ts'
import type { Customer, Operation, Server } from './customer.ts'

const run = promisify(execFile)
const EXAMPLES = join(import.meta.dirname, '../../examples')
const PATIENCE_MILLISECONDS = 120_000

export type Kubectl = (...flags: string[]) => Promise<string>

/** kubectl with the kubeconfig, in the namespace. Rejects with what it says on its error output. */
export const kubectlOf =
  (kubeconfig: string, namespace: string): Kubectl =>
  async (...flags) =>
    (
      await run(toolPath('kubectl'), [
        '--kubeconfig',
        kubeconfig,
        '--cache-dir',
        `${kubeconfig}.cache`,
        '-n',
        namespace,
        ...flags,
      ])
    ).stdout

export interface Interfaces {
  readonly customer: Customer
  /** As the person. */
  readonly kubectl: Kubectl
  /** What the Kubernetes API calls the person. */
  readonly username: string
}

interface Example {
  readonly kind: string
  readonly metadata: { readonly name: string }
  readonly spec: Readonly<Record<string, string>>
}

interface Entry {
  readonly action: string
  readonly actor_email: string
  readonly outcome: string
  readonly resource_id: string
}

/** `made` is a server that was made over REST, in the same account. */
export async function tryEqualInterfaces({ customer, kubectl, username }: Interfaces, made: Server): Promise<void> {
  const actor = `user:${username}`
  const files = (await readdir(EXAMPLES)).filter((file) => file.endsWith('.yaml'))
  const examples = (
    await Promise.all(files.map(async (file) => parseAllDocuments(await readFile(join(EXAMPLES, file), 'utf8'))))
  )
    .flat()
    .map((document) => document.toJS() as Example)
  const example = examples.find(({ metadata }) => metadata.name === 'from-git')
  if (example === undefined) throw new Error('there is no example of a server of its own')
  const { name } = example.metadata
  const patch = (id: string, spec: object) =>
    kubectl('patch', 'server', id, '--type=merge', '-p', JSON.stringify({ spec }))
  const isGone = (id: string) =>
    eventually(
      `${id} to be gone`,
      async () => (await customer.request('GET', `/v1/servers/${id}`)).status === 404,
      PATIENCE_MILLISECONDS,
    )
  const inState = (id: string, state: string) =>
    until(
      `${id} to be ${state}`,
      () => customer.server(id),
      (server) => server.state === state && server.active_operation === null,
      PATIENCE_MILLISECONDS,
    )
  const entries = async () =>
    (await customer.request<{ items: Entry[] }>('GET', '/v1/audit')).body.items.map(
      ({ action, actor_email, outcome, resource_id }) => `${action} ${resource_id} ${actor_email} ${outcome}`,
    )

  // Made from a file, as it would be over REST.
  await kubectl('apply', '--dry-run=server', '-f', EXAMPLES)
  expect(await kubectl('get', 'servers', '-o', 'name')).not.toContain(name)
  expect(await kubectl('apply', '-f', EXAMPLES)).toContain('created')
  await kubectl('wait', '--for=condition=Ready', `server/${name}`, '--timeout=120s')
  await inState(name, 'started')
  expect(await kubectl('apply', '-f', EXAMPLES)).not.toMatch(/created|configured/)
  expect(await customer.server(name)).toMatchObject({
    hostname: example.spec['hostname'],
    title: example.spec['title'],
    labels: example.spec['labels'],
  })

  // What the API refuses is refused here, for the same reason.
  await expect(patch(name, { zone: 'elsewhere' })).rejects.toThrow('zone cannot be changed')
  await expect(patch(name, { operation: { actor: 'user:somebody-else' } })).rejects.toThrow(
    'spec.operation is written by the platform only',
  )
  await expect(
    kubectl('patch', 'server', name, '--subresource=status', '--type=merge', '-p', '{"status":{"state":"stopped"}}'),
  ).rejects.toThrow(/forbidden/i)
  await expect(kubectl('delete', 'operations', '--all')).rejects.toThrow(/forbidden/i)
  await expect(kubectl('get', 'servers', '-A')).rejects.toThrow(/forbidden/i)
  const taken = {
    apiVersion: 'svccloud.dev/v1alpha1',
    kind: 'Server',
    metadata: { name: 'twin' },
    spec: { ...example.spec, hostname: made.hostname },
  }
  await expect(applied(kubectl, taken)).rejects.toThrow('name_taken')
  await expect(
    applied(kubectl, { ...taken, spec: { ...example.spec, hostname: 'huge', storageGibibytes: 16_384 } }),
  ).rejects.toThrow('quota_exceeded')

  // REST changes what kubectl made, and the other way round.
  expect(
    (await customer.request('PATCH', `/v1/servers/${name}`, { is_protected: true, title: 'By REST' })).status,
  ).toBe(200)
  expect(await kubectl('get', 'server', name, '-o', 'jsonpath={.spec.title} {.spec.isProtected}')).toBe('By REST true')
  await expect(kubectl('delete', 'server', name, '--wait=false')).rejects.toThrow('protected')
  expect(
    await customer.finished((await customer.change('POST', `/v1/servers/${name}/stop`, { stop_type: 'hard' })).id),
  ).toMatchObject({ status: 'succeeded' })
  await kubectl('wait', '--for=jsonpath={.status.state}=stopped', `server/${name}`, '--timeout=60s')
  await patch(name, { desiredPower: 'running', isProtected: false })
  await inState(name, 'started')
  await patch(made.id, { desiredPower: 'stopped', title: 'By kubectl' })
  await inState(made.id, 'stopped')
  expect(await customer.server(made.id)).toMatchObject({ title: 'By kubectl', desired_power: 'stopped' })
  await until(
    'the entry of the new title',
    entries,
    (all) => all.includes(`server.update ${made.id} ${actor} success`),
    PATIENCE_MILLISECONDS,
  )

  // What is made from something else wants it to be there.
  const ofStorage = parse(
    await readFile(join(EXAMPLES, 'from-existing/custom-image-of-a-storage.yaml'), 'utf8'),
  ) as Example
  await expect(applied(kubectl, ofStorage, '--dry-run=server')).rejects.toThrow('No such storage')
  const ofMade = { ...ofStorage, spec: { ...ofStorage.spec, source: { storageId: made.id } } }
  expect(await applied(kubectl, ofMade, '--dry-run=server')).toContain('created')

  // A group of the same folder keeps its servers, by either interface.
  const group = examples.find(({ kind }) => kind === 'ServerGroup')?.metadata.name ?? ''
  const members = examples.filter(({ spec }) => spec['serverGroupId'] === group).map(({ metadata }) => metadata.name)
  for (const member of members) await inState(member, 'started')
  expect(
    (
      await customer.request<{ server_group: { members: string[] } }>('GET', `/v1/server-groups/${group}`)
    ).body.server_group.members.toSorted(),
  ).toEqual(members.toSorted())
  await expect(kubectl('delete', 'servergroup', group, '--wait=false')).rejects.toThrow('in_use')
  expect((await customer.request('DELETE', `/v1/server-groups/${group}`)).status).toBe(409)

  // Tools apply in their own order: a server waits for the group that comes after it.
  const kept = { name: 'late', zone: example.spec['zone'] }
  await applied(kubectl, {
    apiVersion: 'svccloud.dev/v1alpha1',
    kind: 'Server',
    metadata: { name: 'early' },
    spec: { ...example.spec, hostname: 'early', serverGroupId: kept.name },
  })
  await applied(kubectl, {
    apiVersion: 'svccloud.dev/v1alpha1',
    kind: 'ServerGroup',
    metadata: { name: kept.name },
    spec: kept,
  })
  await inState('early', 'started')

  // Deleted, however it was made; every change was a separate operation, in the name of who asked.
  await kubectl('delete', 'servers', name, 'early', ...members, '--timeout=120s')
  await kubectl('delete', 'servergroups', group, kept.name, '--timeout=60s')
  await kubectl('delete', 'server', made.id, '--timeout=120s')
  await isGone(name)
  await isGone(made.id)
  expect(await operationsOf(kubectl, name)).toEqual([
    `server.create ${actor} succeeded`,
    `server.delete ${actor} succeeded`,
    `server.start ${actor} succeeded`,
    'server.stop token:test succeeded',
  ])
  expect(await operationsOf(kubectl, made.id)).toEqual([
    `server.create token:test succeeded`,
    `server.delete ${actor} succeeded`,
    `server.stop ${actor} succeeded`,
  ])
  expect(await entries()).toEqual(
    expect.arrayContaining([
      ...['create', 'start', 'delete'].map((verb) => `server.${verb} ${name} ${actor} success`),
      ...['stop', 'delete'].map((verb) => `server.${verb} ${made.id} ${actor} success`),
      `server_group.create ${group} ${actor} success`,
      `server_group.delete ${group} ${actor} success`,
      `server_group.delete ${group} ${actor} failed`,
      `server.delete ${name} ${actor} failed`,
      `server.update ${name} ${actor} denied`,
      `server.create twin ${actor} failed`,
    ]),
  )
}

async function applied(kubectl: Kubectl, object: object, ...flags: string[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-apply-'))
  try {
    await writeFile(join(folder, 'object.json'), JSON.stringify(object))
    return await kubectl('create', '-f', join(folder, 'object.json'), ...flags)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** What was done to the server, and how it ended; once every record has its end. */
async function operationsOf(kubectl: Kubectl, id: string): Promise<readonly string[]> {
  return until(
    `the operations of ${id} to have ended`,
    async () => {
      const { items } = JSON.parse(
        await kubectl('get', 'operations', `--field-selector=spec.target.id=${id}`, '-o', 'json'),
      ) as { items: { spec: Operation; status?: Operation }[] } // a list of Operations
      return items.map(({ spec, status }) => `${spec.kind} ${spec.actor} ${status?.status}`).sort()
    },
    (states) => states.every((text) => text.endsWith('succeeded')),
    PATIENCE_MILLISECONDS,
  )
}
