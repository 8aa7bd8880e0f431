/** Names under which attempts are counted. */
import type { RequestFacts } from '../../kit/http/call.ts'
import { addressKey } from '../../kit/http/steps/limit-address.ts'

/** Attempts at one account, from any client. */
export const emailSubject = (email: string): string => `email ${email}`
/** Attempts of one client, at any account. */
export const addressSubject = (request: RequestFacts): string => `address ${addressKey(request.sourceIp)}`
