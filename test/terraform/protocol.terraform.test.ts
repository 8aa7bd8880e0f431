/** What the provider offers besides resources, by the real programs: secrets that no state has, imports by identity,
 *  lists, actions, and few requests for many objects. What a program does not know is skipped. */
import { execFileSync } from 'node:child_process'
import { createServer, request as send } from 'node:http'
import type { AddressInfo } from 'node:net'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, describe, expect, inject, test } from 'vitest'
import { pathOf, type Program, PROGRAMS, Workspace } from './workspace.ts'

const PROVIDER = `
terraform {
  required_providers {
    svccloud = {
      source = "registry.terraform.io/svccloud/svccloud"
    }
  }
}
`
const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKfW0y1WQ3x8fMgmvHpsyWkBq3W1H2yj4v3mO3b2pTqI test@example.com'
const SERVER = `
resource "svccloud_server" "example" {
  zone     = "eu-1a"
  hostname = "protocol"
  plan     = "tiny"
  template = "tiny-linux"
  ssh_keys = ["${KEY}"]
}
`

/** A request by REST, as another program sends it. */
async function rest(method: string, path: string, body?: object): Promise<{ readonly status: number; body: any }> {
  const answer = await fetch(`${inject('terraformUrl')}${path}`, {
    method,
    headers: { authorization: `Bearer ${inject('terraformToken')}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  return { status: answer.status, body: await answer.json() }
}

/** Passes requests on to the product, and remembers them. */
async function openCounter() {
  const requests: string[] = []
  const target = new URL(inject('terraformUrl') ?? '')
  const server = createServer((incoming, outgoing) => {
    requests.push(`${incoming.method} ${incoming.url}`)
    const { method, headers, url: path } = incoming
    const passed = send({ host: target.hostname, port: target.port, method, path, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(outgoing)
    })
    passed.on('error', () => outgoing.destroy())
    incoming.pipe(passed)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo // a socket of TCP
  return {
    requests,
    url: `http://127.0.0.1:${port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(resolve)
        server.closeAllConnections()
      }),
  }
}

/** Terraform knows actions and lists from 1.14 on; OpenTofu knows neither. */
function knowsActions(program: Program): boolean {
  const path = pathOf(program)
  if (program === 'tofu' || path === undefined) return false
  const { terraform_version: version } = JSON.parse(execFileSync(path, ['version', '-json'], { encoding: 'utf8' })) as {
    readonly terraform_version: string
  }
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major > 1 || minor >= 14
}

const story = (program: Program) => {
  const open: Workspace[] = []
  const openWorkspace = async (text: string, variables: Readonly<Record<string, string>> = {}) => {
    const workspace = await Workspace.open(PROVIDER + text, program, variables)
    open.push(workspace)
    return workspace
  }
  afterAll(() => Promise.all(open.map((workspace) => workspace.close())))

  test('a secret that is read is in no state and no plan', async () => {
    await rest('POST', '/v1/object-storage', { zone: 'eu-1a' })
    const { body } = await rest('GET', '/v1/object-storage/eu-1a/credentials')
    const { secret_access_key: secret } = body.credentials as { readonly secret_access_key: string }
    const workspace = await openWorkspace(`
ephemeral "svccloud_object_storage_credentials" "main" {
  zone = "eu-1a"
}
locals {
  key = ephemeral.svccloud_object_storage_credentials.main.credentials
}
resource "svccloud_server" "example" {
  zone                 = "eu-1a"
  hostname             = "secretive-${program}"
  plan                 = "tiny"
  template             = "tiny-linux"
  ssh_keys             = ["${KEY}"]
  user_data_wo         = "#!/bin/sh\\n# \${local.key.secret_access_key}"
  user_data_wo_version = 1
}
`)
    await workspace.run('plan', '-input=false', '-out=plan.bin')
    const plan = await workspace.run('show', '-json', 'plan.bin')
    const { output } = await workspace.attempt('apply', '-input=false', 'plan.bin')
    expect(await workspace.changes()).toEqual([])
    const id = String((await workspace.attributes('svccloud_server'))['id'])
    expect((await rest('GET', `/v1/servers/${id}`)).status).toBe(200)
    for (const text of [plan, output, await workspace.text('terraform.tfstate')]) expect(text).not.toContain(secret)
  })

  test('a secret of what is not there is refused', async () => {
    const workspace = await openWorkspace(`
ephemeral "svccloud_database_credentials" "main" {
  id = "01a1ff50-8add-720c-b721-970d86569b22"
}
`)
    const { code, output } = await workspace.attempt('plan', '-input=false')
    expect(code).toBe(1)
    expect(output).toContain('No such database')
  })

  test('many objects are read in few requests', async () => {
    const counter = await openCounter()
    const many = 16
    const workspace = await Workspace.open(
      `${PROVIDER}
resource "svccloud_server" "many" {
  count    = ${many}
  zone     = count.index % 2 == 0 ? "eu-1a" : "eu-1b"
  hostname = "many-${program}-\${count.index}"
  plan     = "tiny"
  template = "tiny-linux"
  ssh_keys = ["${KEY}"]
}
`,
      program,
      { SVCCLOUD_URL: counter.url },
    )
    try {
      await workspace.apply()
      counter.requests.length = 0
      expect((await workspace.attempt('plan', '-input=false', '-detailed-exitcode')).code).toBe(0)
      // each by itself, with its interfaces and its firewall, would be 48
      expect(counter.requests.length).toBeLessThan(10)
    } finally {
      await workspace.close()
      await counter.close()
    }
  })

  describe('what later versions know', () => {
    const known = knowsActions(program) || program === 'tofu'
    test.skipIf(!known)('an object is imported by its identity', async () => {
      const { body } = await rest('POST', '/v1/init-scripts', { name: `found-${program}`, content: '#!/bin/sh\n' })
      const { id } = body.init_script as { readonly id: string }
      const workspace = await openWorkspace(`
import {
  to       = svccloud_init_script.example
  identity = { id = "${id}" }
}
resource "svccloud_init_script" "example" {
  name    = "found-${program}"
  content = "#!/bin/sh\\n"
}
`)
      await workspace.apply()
      expect((await workspace.attributes('svccloud_init_script'))['id']).toBe(id)
      expect(await workspace.changes()).toEqual([])
    })

    test.skipIf(!knowsActions(program))('an action is done when it is asked for', async () => {
      const workspace = await openWorkspace(`${SERVER}
action "svccloud_restart_server" "example" {
  config {
    id = svccloud_server.example.id
  }
}
`)
      await workspace.apply()
      const id = String((await workspace.attributes('svccloud_server'))['id'])
      await workspace.run('apply', '-auto-approve', '-input=false', '-invoke=action.svccloud_restart_server.example')
      const { body } = await rest('GET', `/v1/operations?target_id=${id}`)
      const kinds = (body.items as readonly { readonly kind: string; readonly status: string }[]).map(
        ({ kind, status }) => `${kind} ${status}`,
      )
      expect(kinds).toContain('server.restart succeeded')
      expect(await workspace.changes()).toEqual([])
    })

    test.skipIf(!knowsActions(program))('what a list finds is imported as it is', async () => {
      for (const name of ['one', 'two'])
        await rest('POST', '/v1/networks', { zone: 'eu-1a', name, labels: { of: 'list' } })
      const workspace = await openWorkspace('')
      await writeFile(
        join(workspace.folder, 'found.tfquery.hcl'),
        `
list "svccloud_network" "found" {
  provider = svccloud
  config {
    with_labels = { of = "list" }
  }
}
`,
      )
      await workspace.run('query', '-generate-config-out=found.tf')
      const { output } = await workspace.attempt('plan', '-input=false')
      expect(output).toContain('2 to import, 0 to add, 0 to change, 0 to destroy')
      await workspace.apply()
      expect(await workspace.changes()).toEqual([])
    })
  })
}

for (const program of PROGRAMS) {
  describe.skipIf(pathOf(program) === undefined)(program, () => story(program))
}
