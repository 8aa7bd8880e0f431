/** The next page of a list that is read page by page. */
import type { UseInfiniteQueryResult } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import type { OperationId } from '../api/operations.ts'
import { asRefusal } from '../api/refusal.ts'
import { t } from '../texts/index.ts'
import { Button } from '../ui/button.tsx'
import { Stack } from '../ui/layout.tsx'
import { ProblemView } from '../ui/problem.tsx'

type Paged = Pick<
  UseInfiniteQueryResult,
  'hasNextPage' | 'isFetchingNextPage' | 'isFetchNextPageError' | 'error' | 'fetchNextPage'
>

/** Asked for twice, the first request would be given up. */
function load(list: Paged): void {
  if (!list.isFetchingNextPage) void list.fetchNextPage()
}

/** For the end of a table: a page that was refused is asked for again by a person alone. */
export const atEndOf = (list: Paged): (() => void) | undefined =>
  list.hasNextPage && !list.isFetchNextPageError ? () => load(list) : undefined

export interface LoadMoreProps {
  readonly list: Paged
  readonly operation: OperationId
}

export const LoadMore = ({ list, operation }: LoadMoreProps): ReactNode => (
  <Stack>
    {list.isFetchNextPageError ? <ProblemView refusal={asRefusal(operation, list.error)} /> : null}
    <div>
      <Button kind="quiet" isBusy={list.isFetchingNextPage} onPress={() => load(list)}>
        {t().list.loadMore}
      </Button>
    </div>
  </Stack>
)
