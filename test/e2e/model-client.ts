/** A model's side of MCP, with the official client: it knows nothing but what the tools say. */
import { randomUUID } from 'node:crypto'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { z } from 'zod'

const READS_MAXIMUM = 40
const WAIT_SECONDS = 5
const OPERATION_WAIT_SECONDS = 30
const OPERATION_READS_MAXIMUM = 8
const Read = z.looseObject({
  console: z.looseObject({ text: z.string(), position: z.string(), is_found: z.boolean() }),
})
const Operation = z.looseObject({ operation: z.looseObject({ status: z.string() }) })

/** Signed in by a token of the customer. */
export async function connectModel(apiUrl: string, token: string) {
  const client = new Client({ name: 'model', version: '1' }, { versionNegotiation: { mode: 'auto' } })
  const headers = { authorization: `Bearer ${token}` }
  await client.connect(new StreamableHTTPClientTransport(new URL(`${apiUrl}/mcp`), { requestInit: { headers } }))

  async function call(name: string, given: Record<string, unknown> = {}): Promise<Record<string, unknown>> {
    const result = await client.callTool({ name, arguments: given })
    if (result.isError === true) throw new Error(`${name} answered ${JSON.stringify(result.content)}`)
    return z.record(z.string(), z.unknown()).parse(result.structuredContent ?? {})
  }
  const read = async (id: string, given: { since?: string; wait_for?: string }) =>
    Read.parse(await call('read_server_console', { id, wait: WAIT_SECONDS, ...given })).console
  const type = (id: string, text: string) =>
    call('send_server_console_input', {
      id,
      session_id: randomUUID(),
      data: Buffer.from(text).toString('base64'),
    })

  return {
    call,
    /** The operation, once it has ended. */
    async finished({ id }: { readonly id: string }) {
      for (let reads = 0; reads < OPERATION_READS_MAXIMUM; reads++) {
        const { operation } = Operation.parse(await call('get_operation', { id, wait: OPERATION_WAIT_SECONDS }))
        if (['succeeded', 'failed', 'cancelled'].includes(operation.status)) return operation
      }
      throw new Error(`operation ${id} did not end`)
    },
    /** What the command writes, typed at a prompt of the console. */
    async run(id: string, command: string): Promise<string> {
      // A guest that boots takes nothing yet: a prompt is asked for until one comes.
      let { position } = await read(id, {})
      let isPrompting = false
      for (let reads = 0; reads < READS_MAXIMUM && !isPrompting; reads++) {
        await type(id, '\n')
        const seen = await read(id, { since: position, wait_for: '# ' })
        ;({ position, is_found: isPrompting } = seen)
      }
      // The end is written in two parts, so that the echo of the command is not taken for it.
      await type(id, `${command}; echo "the"" end"\n`)
      let text = ''
      for (let reads = 0; reads < READS_MAXIMUM; reads++) {
        const seen = await read(id, { since: position, wait_for: 'the end' })
        position = seen.position
        text += seen.text
        if (text.includes('the end')) return text
      }
      throw new Error(`${command} did not end: ${text}`)
    },
    close: () => client.close(),
  }
}
