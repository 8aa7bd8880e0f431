/** A model works with the running product through MCP: the official client of each generation, a token that may only
 *  read and one that may write, and a server with a real guest from nothing to gone. The tests build on each other. */
import { Client as NewClient, StreamableHTTPClientTransport as NewTransport } from '@modelcontextprotocol/client'
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { eventually, until } from '../eventually.ts'
import { Customer, type Operation, type Server } from './customer.ts'
import type { Product } from './product.ts'

const REVISION = '2026-07-28'

/** What both generations of the client have. */
interface Model {
  listTools(): Promise<{
    readonly tools: readonly { readonly name: string; readonly annotations?: object | undefined }[]
  }>
  callTool(call: { readonly name: string; readonly arguments?: Record<string, unknown> }): Promise<object>
  close(): Promise<void>
}

/** Tests of the product that runs. */
export function modelTests(running: () => Product): void {
  let customer: Customer
  const models: Model[] = []
  let reader: Model
  let writer: Model
  let serverId: string

  beforeAll(async () => {
    customer = await Customer.signUp(running, 'model@example.com')
    await customer.addSshKey()
  })
  afterAll(async () => {
    for (const model of models) await model.close()
  })

  const connection = (token: string): [URL, { requestInit: RequestInit }] => [
    new URL('/mcp', running().endpoints.api_url),
    { requestInit: { headers: { authorization: `Bearer ${token}` } } },
  ]

  /** The first generation opens with a handshake. */
  async function oldModel(token: string): Promise<Model> {
    const client = new OldClient({ name: 'old model', version: '1' })
    // its types are not for exactOptionalPropertyTypes
    await client.connect(new OldTransport(...connection(token)) as Parameters<OldClient['connect']>[0])
    models.push(client)
    return client
  }

  /** The second one says with every request which revision it speaks. */
  async function newModel(token: string): Promise<Model> {
    const client = new NewClient(
      { name: 'new model', version: '1' },
      { versionNegotiation: { mode: { pin: REVISION } } },
    )
    await client.connect(new NewTransport(...connection(token)))
    models.push(client)
    return client
  }

  /** The answer of the operation that the tool is. */
  async function use<Answer>(model: Model, name: string, given: Record<string, unknown> = {}): Promise<Answer> {
    const result = (await model.callTool({ name, arguments: given })) as {
      readonly isError?: boolean
      readonly structuredContent: Answer
    } // a result of a tool
    if (result.isError === true) throw new Error(`${name}: ${JSON.stringify(result.structuredContent)}`)
    return result.structuredContent
  }

  /** As a model is instructed to: waits until it has ended. */
  const ended = (model: Model, id: string) =>
    eventually(
      `operation ${id} to end`,
      async () => {
        const { operation } = await use<{ operation: Operation }>(model, 'get_operation', { id, wait: 20 })
        return ['succeeded', 'failed', 'cancelled'].includes(operation.status) ? operation : undefined
      },
      240_000,
    )

  it('lists for a token that only reads what changes nothing, for one that writes more', async () => {
    reader = await oldModel(await customer.newToken('looks', 'read'))
    writer = await newModel(await customer.newToken('works', 'read_write'))
    const [fewer, more] = [(await reader.listTools()).tools, (await writer.listTools()).tools]
    expect(fewer.map(({ name }) => name)).toEqual(
      expect.arrayContaining([
        'get_operation',
        'get_server',
        'list_plans',
        'list_servers',
        'list_templates',
        'list_zones',
      ]),
    )
    for (const name of ['whoami']) expect(fewer.map((tool) => tool.name)).toContain(name)
    for (const { name, annotations } of fewer)
      expect(annotations, name).toMatchObject({ readOnlyHint: true, destructiveHint: false })
    const added = more.filter(({ name }) => !fewer.some((tool) => tool.name === name))
    expect(added.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['create_server', 'delete_server', 'stop_server']),
    )
    expect(added.find(({ name }) => name === 'delete_server')?.annotations).toMatchObject({
      readOnlyHint: false,
      destructiveHint: true,
    })
    expect(more.length).toBe(fewer.length + added.length)
  })

  it('finds out what there is and makes a server of it, which starts', async () => {
    const first = async (tool: string) =>
      (await use<{ items: { name: string }[] }>(writer, tool)).items.map(({ name }) => name)
    const [zones, plans, templates] = [
      await first('list_zones'),
      await first('list_plans'),
      await first('list_templates'),
    ]
    expect([plans, templates]).toEqual([expect.arrayContaining(['tiny']), expect.arrayContaining(['tiny-linux'])])
    const made = await use<{ server: Server; operation: Operation }>(writer, 'create_server', {
      zone: zones[0],
      plan: 'tiny',
      template: 'tiny-linux',
      hostname: 'by-model',
    })
    serverId = made.server.id
    expect(await ended(writer, made.operation.id)).toMatchObject({
      kind: 'server.create',
      status: 'succeeded',
      actor: 'token:works',
    })
    expect(await running().guests()).toHaveLength(1)
  })

  it('reads it with either token, and only the one that may changes it', async () => {
    for (const model of [reader, writer]) {
      expect(await use(model, 'get_server', { id: serverId })).toMatchObject({
        server: { hostname: 'by-model', state: 'started' },
      })
      expect(await use(model, 'list_servers', { hostname: 'by-model' })).toMatchObject({
        items: [{ id: serverId }],
        next_cursor: null,
      })
    }
    expect(await reader.callTool({ name: 'delete_server', arguments: { id: serverId } })).toMatchObject({
      isError: true,
      structuredContent: { status: 403 },
    })
    expect(await customer.server(serverId)).toMatchObject({ state: 'started', active_operation: null })
  })

  it('deletes it, and nothing is left', async () => {
    const { operation } = await use<{ operation: Operation }>(writer, 'delete_server', { id: serverId })
    expect(await ended(writer, operation.id)).toMatchObject({ kind: 'server.delete', status: 'succeeded' })
    expect(await writer.callTool({ name: 'get_server', arguments: { id: serverId } })).toMatchObject({
      isError: true,
      structuredContent: { status: 404 },
    })
    await until(
      'nothing to be left',
      () => running().leftovers(),
      (left) => left.length === 0,
    )
  })

  it('is in the audit log by the names of its tokens', async () => {
    const { body } = await customer.request<{
      items: { action: string; outcome: string; token_name: string | null }[]
    }>('GET', '/v1/audit')
    const entries = body.items
      .filter(({ action }) => action.startsWith('server.'))
      .map(({ action, outcome, token_name }) => `${token_name} ${action} ${outcome}`)
    expect(entries).toEqual([
      'works server.delete success',
      'looks server.delete denied',
      'works server.create success',
    ])
  })
}
