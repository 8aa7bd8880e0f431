/** Servers of people. */
import type { Person } from './person.ts'

/** A server that runs; its id. Other tests fill the first zone. */
export async function serverOf({ customer }: Person): Promise<string> {
  await customer.addSshKey()
  const body = { zone: 'eu-1b', hostname: 'web-1', plan: 'tiny', template: 'tiny-linux' }
  const { server, operation } = await customer.createServer(body)
  await customer.finished(operation.id)
  return server.id
}
