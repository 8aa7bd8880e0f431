/** Members of the staff of the tier's product. */
import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { generate } from 'otplib'
import { inject } from 'vitest'
import { makeStaff } from '../../../../apiserver/staff/create.ts'
import { type Database, openDatabase } from '../../../../db/kit/open.ts'
import type { StaffRole } from '../../../../domain/permissions.ts'
import type { Endpoints } from '../../../../embedded/cloud.ts'
import { systemClock } from '../../../../kit/sys/clock.ts'
import { systemRandom } from '../../../../kit/sys/random.ts'
import { createSealing, parseSealingKeys } from '../../../../kit/sys/sealing.ts'
import { cookiesOf, newAddress, type Visitor } from './person.ts'

export interface StaffMember extends Visitor {
  readonly email: string
  readonly password: string
  /** Code of the authenticator; each works once. */
  readonly code: () => Promise<string>
  /** A request at the operator listener with the session, which must answer the status. */
  readonly request: <Body>(method: string, path: string, status: number, body?: object) => Promise<Body>
}

export interface StaffParts {
  readonly endpoints: Endpoints
  /** Folder of the product. */
  readonly data: string
}

/** Of the tier's product. */
export function partsOf({ endpoints }: Pick<StaffParts, 'endpoints'>): StaffParts {
  const data = inject('portalData')
  if (data === undefined) throw new Error('the tier has no product')
  return { endpoints, data }
}

/** Creates a member of the staff as `npm run staff` does, who signs in with password and second factor. */
export async function newStaff({ endpoints, data }: StaffParts, role: StaffRole): Promise<StaffMember> {
  const { email, password, secret } = await createMember({ endpoints, data }, role)
  const code = () => generate({ secret })
  const address = newAddress()
  const url = endpoints.operator_url
  const post = async (path: string, body: object) => {
    const headers = { 'content-type': 'application/json', 'x-forwarded-for': address }
    return await answered(200, await fetch(`${url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) }))
  }
  const { challenge } = (await (await post('/v1/admin/auth/login', { email, password })).json()) as Challenge
  const cookies = cookiesOf(await post('/v1/admin/auth/login/mfa', { challenge, code: await code() }))
  const csrf = cookies.find(({ name }) => name === 'svccloud_staff_csrf')?.value ?? ''
  const headers = {
    cookie: cookies.map(({ name, value }) => `${name}=${value}`).join('; '),
    'x-csrf-token': csrf,
    'x-forwarded-for': address,
  }
  const request = async <Body>(method: string, path: string, status: number, body?: object): Promise<Body> => {
    const content = body === undefined ? {} : { body: JSON.stringify(body) }
    const type = body === undefined ? {} : { 'content-type': 'application/json' }
    const response = await fetch(`${url}${path}`, { method, headers: { ...headers, ...type }, ...content })
    return (await (await answered(status, response)).json()) as Body // what the caller knows the route to answer
  }
  return { email, password, code, address, cookies, request }
}

/** Of the contract. */
interface Challenge {
  readonly challenge: string
}

/** Somebody without a session: their first code is not used yet. */
export async function createMember(
  { endpoints, data }: StaffParts,
  role: StaffRole,
): Promise<{ readonly email: string; readonly password: string; readonly secret: string }> {
  const keys = parseSealingKeys((await readFile(join(data, 'sealing-keys'), 'utf8')).trim())
  const sealing = createSealing(keys, systemRandom)
  const email = `${randomUUID()}@staff.example.com`
  const made = await withDatabase({ endpoints }, (db) =>
    makeStaff({ db, clock: systemClock, random: systemRandom, sealing }, { email, name: 'Sam', role }),
  )
  if (made === undefined) throw new Error(`${email} is one of the staff already`)
  return { email, password: made.password, secret: made.secret }
}

/** What the product keeps in PostgreSQL. */
export async function withDatabase<Result>(
  { endpoints }: Pick<StaffParts, 'endpoints'>,
  work: (db: Database) => Promise<Result>,
): Promise<Result> {
  const db = openDatabase({ url: endpoints.postgres_url, connectionsMaximum: 1 })
  try {
    return await work(db)
  } finally {
    await db.destroy()
  }
}

async function answered(status: number, response: Response): Promise<Response> {
  if (response.status === status) return response
  throw new Error(`${response.url} answered ${response.status} instead of ${status}: ${await response.text()}`)
}
