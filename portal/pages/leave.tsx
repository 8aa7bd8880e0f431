/** Asks before a page is left while something of it is under way. */
import type { RouterHistory } from '@tanstack/react-router'
import { type ReactNode, useEffect, useRef, useState } from 'react'
import { storageTexts } from '../texts/object-storage.ts'
import { Confirm } from '../ui/dialog.tsx'

/** The question, which has to be somewhere on the page. Of other pages and of closed tabs: the search of an address
 *  changes without one. */
export function useLeaveQuestion(history: Pick<RouterHistory, 'block'>, isUnderWay: boolean): ReactNode {
  const [isAsked, setAsked] = useState(false)
  const answer = useRef<(isBlocked: boolean) => void>(undefined)
  const end = (isBlocked: boolean): void => {
    setAsked(false)
    answer.current?.(isBlocked)
  }
  useEffect(() => {
    if (!isUnderWay) return undefined
    return history.block({
      blockerFn: ({ currentLocation, nextLocation }) => {
        if (currentLocation.pathname === nextLocation.pathname) return false
        // one that was asked for before
        answer.current?.(true)
        setAsked(true)
        return new Promise<boolean>((resolve) => {
          answer.current = resolve
        })
      },
    })
  }, [history, isUnderWay])
  const texts = storageTexts()
  return isAsked ? (
    <Confirm
      title={texts.leaveTitle}
      text={texts.leaveText}
      button={texts.leave}
      isBusy={false}
      onConfirm={() => end(false)}
      onClose={() => end(true)}
    />
  ) : null
}
