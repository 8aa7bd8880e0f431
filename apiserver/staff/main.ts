/** `npm run staff -- create EMAIL --role support|finance|operations [--name NAME]`: makes a member of the staff, with
 *  the database and the sealing keys of the environment. */
import { parseArgs } from 'node:util'
import { STAFF_ROLES } from '../../domain/permissions.ts'
import { migrate, openDatabase } from '../../db/open.ts'
import { systemClock } from '../../kit/sys/clock.ts'
import { environment, printErrorLine, printLine, processArguments, setExitCode } from '../../kit/sys/process.ts'
import { systemRandom } from '../../kit/sys/random.ts'
import { createSealing, parseSealingKeys } from '../identity/sealing.ts'
import { makeStaff } from './create.ts'

const USAGE =
  'Usage: npm run staff -- create EMAIL --role support|finance|operations [--name NAME]\nNeeds DATABASE_URL and ' +
  'SVCCLOUD_SEALING_KEYS.'

async function main(): Promise<string | undefined> {
  const { positionals, values } = parseArgs({
    args: [...processArguments()],
    allowPositionals: true,
    options: { role: { type: 'string' }, name: { type: 'string' } },
  })
  const [verb, email] = positionals
  const role = STAFF_ROLES.find((known) => known === values.role)
  const settings = environment()
  const url = settings['DATABASE_URL'] ?? settings['SVCCLOUD_DATABASE_URL']
  const sealing = createSealing(parseSealingKeys(settings['SVCCLOUD_SEALING_KEYS'] ?? ''), systemRandom)
  if (
    verb !== 'create' ||
    email === undefined ||
    !email.includes('@') ||
    role === undefined ||
    url === undefined ||
    !sealing.isAvailable
  )
    return USAGE
  const db = openDatabase({ url, connectionsMaximum: 2 })
  try {
    await migrate(db)
    const made = await makeStaff(
      { db, clock: systemClock, random: systemRandom, sealing },
      { email, name: values.name ?? email, role },
    )
    if (made === undefined) return `${email} is one of the staff already.`
    printLine(
      `${email} (${role})\n  password       ${made.password}\n  authenticator  ${made.otpauthUri}\nBoth are ` +
        'shown once.',
    )
    return undefined
  } finally {
    await db.destroy()
  }
}

const refusal = await main().catch((error: unknown) => (error instanceof Error ? error.message : String(error)))
if (refusal !== undefined) {
  printErrorLine(refusal)
  setExitCode(1)
}
