/** Creates a member of the staff, on the machine: the only way to create the first one. Returns the password and the
 *  authenticator secret, which are shown once; both are needed to sign in. */
import { generateURI, ScureBase32Plugin } from 'otplib'
import type { StaffRole } from '../../domain/permissions.ts'
import type { Database } from '../../db/kit/open.ts'
import { createStaff } from '../../db/staff/index.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import { newBase62, newUuid, type Random } from '../../kit/sys/random.ts'
import { createPasswords } from '../identity/passwords.ts'
import type { Sealing } from '../../kit/sys/sealing.ts'

const PASSWORD_CHARACTERS = 24
const SECRET_BYTES = 20

export interface CreatedStaff {
  readonly password: string
  readonly secret: string
  readonly otpauthUri: string
}

/** Undefined when a member of the staff has the address already. Needs a sealing key. */
export async function makeStaff(
  parts: { readonly db: Database; readonly clock: Clock; readonly random: Random; readonly sealing: Sealing },
  person: { readonly email: string; readonly name: string; readonly role: StaffRole },
): Promise<CreatedStaff | undefined> {
  const { db, clock, random, sealing } = parts
  const id = newUuid(random)
  const password = newBase62(random, PASSWORD_CHARACTERS)
  const secret = new ScureBase32Plugin().encode(random.bytes(SECRET_BYTES), { padding: false })
  const passwordHash = await (await createPasswords(random)).hash(password)
  const isCreated = await createStaff(db, {
    id,
    email: person.email.toLowerCase(),
    name: person.name,
    role: person.role,
    passwordHash,
    sealedSecret: sealing.seal(secret, id),
    now: clock.now(),
  })
  return isCreated
    ? { password, secret, otpauthUri: generateURI({ issuer: 'svccloud staff', label: person.email, secret }) }
    : undefined
}
