// Contends for a lock by Go's concurrency.Mutex, with one session: see ../../README.md for the commands it reads.
package main

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

func main() {
	endpoint, name := os.Args[1], os.Args[2]
	ttl, err := strconv.Atoi(os.Args[3])
	check(err)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, DialTimeout: time.Minute})
	check(err)
	session, err := concurrency.NewSession(client, concurrency.WithTTL(ttl))
	check(err)
	mutex := concurrency.NewMutex(session, name)

	commands := bufio.NewScanner(os.Stdin)
	for commands.Scan() {
		command := strings.Fields(commands.Text())
		switch command[0] {
		case "hold":
			hold(mutex)
		case "release":
			check(mutex.Unlock(context.Background()))
			fmt.Println("released")
		case "cycle":
			times, err := strconv.Atoi(command[1])
			check(err)
			for range times {
				token := hold(mutex)
				check(count(command[2], token))
				check(mutex.Unlock(context.Background()))
			}
			fmt.Println("cycled")
		}
	}
	check(session.Close())
}

// hold waits for the lock and prints its token: the store's revision when the mutex got the lock.
func hold(mutex *concurrency.Mutex) string {
	check(mutex.Lock(context.Background()))
	token := strconv.FormatInt(mutex.Header().Revision, 10)
	fmt.Println("held " + token)
	return token
}

// count adds 1 to the counter, reading and then writing it, while nobody else is inside.
func count(directory, token string) error {
	inside, counter := filepath.Join(directory, "inside"), filepath.Join(directory, "counter")
	if err := os.Mkdir(inside, 0o755); err != nil {
		return err
	}
	seen, err := os.ReadFile(counter)
	if err != nil {
		return err
	}
	value, err := strconv.Atoi(strings.TrimSpace(string(seen)))
	if err != nil {
		return err
	}
	if err := os.WriteFile(counter, []byte(strconv.Itoa(value+1)), 0o644); err != nil {
		return err
	}
	history, err := os.OpenFile(filepath.Join(directory, "history"), os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := history.WriteString("Go " + token + "\n"); err != nil {
		return err
	}
	if err := history.Close(); err != nil {
		return err
	}
	return os.Remove(inside)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
