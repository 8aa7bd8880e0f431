/** People of the product, each with an account for itself. */
import { randomInt, randomUUID } from 'node:crypto'
import type { Endpoints } from '../../../../embedded/cloud.ts'
import { Customer, PASSWORD } from '../../../e2e/customer.ts'

interface Cookie {
  readonly name: string
  readonly value: string
}

/** Whoever is signed in to a page. */
export interface Visitor {
  /** Those of a session. */
  readonly cookies: readonly Cookie[]
  /** The address that requests come from: rates of addresses are not shared. */
  readonly address: string
}

/** A user with a new account. */
export interface Person extends Visitor {
  readonly email: string
  readonly password: string
  /** What changes the account beside the browser. */
  readonly customer: Customer
}

/** One of a block for private networks. */
export const newAddress = (): string => `10.${randomInt(256)}.${randomInt(256)}.${randomInt(1, 255)}`

/** Signs up as a person does: the address is verified, and a session is open. */
export async function signUp(endpoints: Endpoints): Promise<Person> {
  const email = `${randomUUID()}@example.com`
  const address = newAddress()
  const headers = { 'x-forwarded-for': address }
  const customer = await Customer.signUp(() => ({ endpoints }), email, headers)
  return { email, password: PASSWORD, customer, address, cookies: await signIn(endpoints.api_url, email, headers) }
}

async function signIn(url: string, email: string, headers: Readonly<Record<string, string>>) {
  const response = await fetch(`${url}/v1/auth/login`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify({ email, password: PASSWORD }),
  })
  if (response.status !== 200) throw new Error(`signing in answered ${response.status}: ${await response.text()}`)
  return cookiesOf(response)
}

/** Those that an answer sets. */
export const cookiesOf = ({ headers }: Response): readonly Cookie[] =>
  headers.getSetCookie().map((text) => {
    const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(text) ?? []
    return { name, value }
  })
