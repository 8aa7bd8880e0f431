/** What the image of nodes brings of this project runs there by itself: with its own Node.js, and nothing else. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client, credentials, type MethodDefinition } from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { putProgram } from '../../../../agents/node/images/managed/program-tree.ts'
import { eventually } from '../../../eventually.ts'
import { callerOf } from '../../../addons/csi/driver.ts'

let folder: string
let child: ChildProcess
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-tree-'))
})
afterEach(async () => {
  child.kill('SIGKILL')
  await rm(folder, { recursive: true })
})

const definitions = loadSync('addons/csi/registration.proto')
/** As a kubelet asks. */
function ask(socket: string, name: string, request: object): Promise<unknown> {
  const client = new Client(`unix:${socket}`, credentials.createInsecure())
  // services are tables of methods
  const methods = definitions['pluginregistration.Registration'] as unknown as Record<
    string,
    MethodDefinition<object, object>
  >
  const method = methods[name]
  if (method === undefined) throw new Error(`there is no method ${name}`)
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(
      method.path,
      method.requestSerialize,
      method.responseDeserialize,
      request,
      (error: unknown, answer: unknown) => (error === null ? resolve(answer) : reject(error)),
    )
  }).finally(() => client.close())
}

test('the volume driver runs from its tree, and identifies itself to a kubelet', { timeout: 60_000 }, async () => {
  await putProgram(folder, 'addons/csi/main.ts')
  const [socket, registry] = [join(folder, 'csi.sock'), join(folder, 'reg.sock')]
  child = spawn(join(folder, 'node'), [join(folder, 'addons/csi/main.ts'), 'node'], {
    cwd: '/',
    env: {
      SVCCLOUD_SERVER_ID: 'machine-node-1',
      SVCCLOUD_ZONE: 'eu-1a',
      SVCCLOUD_CSI_SOCKET: socket,
      SVCCLOUD_REGISTRATION_SOCKET: registry,
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let said = ''
  child.stderr?.on('data', (chunk: Buffer) => void (said += chunk.toString()))
  const info = await eventually('the driver', async () => {
    if (child.exitCode !== null) throw new Error(said)
    return ask(registry, 'GetInfo', {}).catch(() => false)
  })
  expect(info).toEqual({
    type: 'CSIPlugin',
    name: 'csi.svccloud.dev',
    endpoint: socket,
    supportedVersions: ['1.0.0'],
  })
  const node = callerOf(socket, 'Node')
  expect(await node.call('NodeGetInfo', {})).toMatchObject({
    nodeId: 'machine-node-1',
    accessibleTopology: { segments: { 'topology.kubernetes.io/zone': 'eu-1a' } },
  })
  node.close()
  // Who was refused is asked again, by a socket that is a new one.
  await ask(registry, 'NotifyRegistrationStatus', { pluginRegistered: true, error: '' })
  const { ino } = await stat(registry)
  await ask(registry, 'NotifyRegistrationStatus', { pluginRegistered: false, error: 'too early' })
  await eventually('another socket', async () => (await stat(registry).catch(() => undefined))?.ino !== ino)
  await eventually('the driver again', () => ask(registry, 'GetInfo', {}).catch(() => false))
  expect(said).toContain('too early')
  child.kill('SIGTERM')
  await eventually('its end', async () => child.exitCode === 0)
})
